"""Very many lines through `penstock produce` and `penstock consume`; ten million by `make soak`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from penstock.testing.broker import EmbeddedBroker

MOST_MB = 200


MEASURE = """
import json, os, subprocess, sys, time
began = time.monotonic()
started = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(started.pid, 0)
found = [os.waitstatus_to_exitcode(status), time.monotonic() - began, usage.ru_maxrss / 1024]
open(sys.argv[1], "w").write(json.dumps(found))
"""
"""Runs in a small process: a child's measured memory is never below that of the process that starts
it.
"""


def run(
    words: list[str], given: BinaryIO | int, printed: BinaryIO | int, folder: Path
) -> tuple[float, float]:
    """The seconds that a command took, and the memory that it needed at most, in MB."""
    measured = folder / "measured"
    command = [sys.executable, "-m", "penstock", *words]
    subprocess.run(
        [sys.executable, "-c", MEASURE, measured, *command],
        stdin=given,
        stdout=printed,
        check=True,
    )
    code, seconds, memory_mb = json.loads(measured.read_text())
    assert code == 0
    return seconds, memory_mb


@pytest.mark.parametrize("count", [50_000, pytest.param(10_000_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_every_line_comes_out_unchanged(
    shared_broker: EmbeddedBroker, tmp_path: Path, count: int
) -> None:
    topic, file, out = f"many-{count}", tmp_path / "lines", tmp_path / "out"
    with file.open("w") as text:
        text.writelines(f"{number}\n" for number in range(count))
    shared_broker.create_topic(topic, 1)
    where = ["--bootstrap-server", shared_broker.bootstrap]
    with file.open("rb") as lines:
        wrote_s, writer_mb = run(["produce", topic, *where], lines, subprocess.DEVNULL, tmp_path)
    with out.open("wb") as printed:
        read_s, reader_mb = run(["consume", topic, *where], subprocess.DEVNULL, printed, tmp_path)
    print(f"{count:,} lines: written in {wrote_s:.1f} s, read in {read_s:.1f} s")
    assert out.read_bytes() == file.read_bytes()
    assert max(writer_mb, reader_mb) < MOST_MB
