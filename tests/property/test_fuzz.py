"""The fuzz targets under Hypothesis; `make soak` lets atheris loose on them for longer."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.decode_target import fuzz_decode
from fuzz.login_target import fuzz_login
from fuzz.record_target import fuzz_record
from fuzz.wire_target import fuzz_wire
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from support.records.wire_values import messages

TARGETS = Path(__file__).parents[1] / "fuzz"


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


@pytest.mark.soak
@pytest.mark.parametrize("target", ["wire", "record", "decode", "login"])
def test_atheris_finds_nothing(target: str, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for api in APIS.values():
        frame = request_frame(api, api.high, 1, "seed", api.request())
        (seeds / api.name).write_bytes(frame)
    for number, message in enumerate(LOGINS):
        (seeds / f"login-{number}").write_bytes(message)
    command = [
        sys.executable,
        str(TARGETS / f"{target}_target.py"),
        "-max_total_time=120",
        str(seeds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
