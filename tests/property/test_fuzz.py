"""The fuzz targets under Hypothesis and atheris: briefly here, for hours in `make soak`."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.decode_target import fuzz_decode
from fuzz.login_target import fuzz_login
from fuzz.record_target import fuzz_record
from fuzz.recovery_target import fuzz_recovery
from fuzz.wire_target import fuzz_wire
from peers.jars import cache
from penstock.record.compression import Codec
from penstock.testing.logs import batch_of
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from support.records.wire_values import messages

ROOT = Path(__file__).parents[2]


@st.composite
def requests(draw: st.DrawFn) -> bytearray:
    api = draw(st.sampled_from(list(APIS.values())))
    version = draw(st.integers(api.low, api.high))
    return request_frame(api, version, 1, "fuzz", draw(messages(api.request, version)))


@settings(max_examples=settings().max_examples * 10)
@given(requests(), st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=4))
def test_changed_bytes_of_a_request_never_crash_the_reader(
    frame: bytearray, changes: list[tuple[int, int]]
) -> None:
    for position, value in changes:
        frame[position % len(frame)] = value
    fuzz_wire(bytes(frame))


@given(st.binary(max_size=300))
def test_any_bytes_never_crash_the_readers(data: bytes) -> None:
    fuzz_wire(data)
    fuzz_record(data)
    fuzz_decode(data)
    fuzz_login(data)


LOGINS = (
    b"\0a\0secret",
    b"n,a=a,n=a,r=nonce,tokenauth=true",
    b"c=biws,r=bnonce,p=AAAA",
    b"n,,\x01auth=Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.AAAA\x01\x01",
    b"eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.AAAA",
    b'realm="zk-sasl-md5",nonce="x",qop="auth",algorithm=md5-sess',
    b"salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=4096",
)


@given(st.sampled_from(LOGINS), st.lists(st.tuples(st.integers(0, 99), st.binary(max_size=3))))
def test_changed_messages_of_a_login_are_refused(
    message: bytes, changes: list[tuple[int, bytes]]
) -> None:
    for position, value in changes:
        at = position % (len(message) + 1)
        message = message[:at] + value + message[at + 1 :]
    fuzz_login(message)


RECOVERED = (
    b"\x00",
    b"\x00" + bytes(batch_of(b"one", b"two")),
    b"\x80" + bytes(batch_of(b"one", producer_id=9, sequence=0, transactional=True)),
    b"\x85" + b"0\n2\n0 0\n1 3\n",
    b"\x81" + bytes(range(16)),
)


@given(st.integers(0, 255), st.sampled_from(RECOVERED), st.binary(max_size=20))
def test_damaged_files_of_a_log_are_recovered(choice: int, found: bytes, more: bytes) -> None:
    fuzz_recovery(bytes([choice]) + found[1:] + more)


SECONDS = int(
    os.environ.get("PENSTOCK_FUZZ_S") or (3000 if os.environ.get("PENSTOCK_SOAK") else 10)
)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("target", ["wire", "record", "decode", "login", "recovery"])
def test_atheris_finds_nothing(target: str, tmp_path: Path) -> None:
    """For ten seconds; `make soak` gives each target an hour. Its findings are kept."""
    seeds, corpus = tmp_path / "seeds", cache() / "fuzz" / target
    for folder in (seeds, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(_seeds(target)):
        (seeds / str(number)).write_bytes(data)
    path = f"{ROOT / 'src'}:{ROOT / 'tests'}"
    command = [sys.executable, "-m", "fuzz", target, f"-max_total_time={SECONDS}"]
    done = subprocess.run(
        [*command, str(corpus), str(seeds)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,  # where it would store an input that breaks the target
        env={**os.environ, "PENSTOCK_PURE": "1", "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _seeds(target: str) -> Iterable[bytes]:
    if target == "login":
        return LOGINS
    if target == "recovery":
        return RECOVERED
    if target == "wire":
        return [bytes(request_frame(api, api.high, 1, "s", api.request())) for api in APIS.values()]
    return [bytes(batch_of(b"one", b"two", codec=codec)) for codec in Codec]
