"""Output that cannot be written: a full disk, a closed pipe, closed streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from peers.penstock import SOURCE
from penstock.record.build import build_batch
from penstock.record.record import Record

PENSTOCK = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A log whose dump is larger than any buffer."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    records = [Record(offset, 0, None, b"x" * 100, []) for offset in range(5000)]
    path.write_bytes(bytes(build_batch(records)))
    return path


def ran(*words: str, redirect: str) -> subprocess.CompletedProcess[str]:
    command = " ".join(f"'{word}'" for word in [*PENSTOCK, *words])
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} {redirect}"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("log", "dump", "SEGMENT")])
def test_a_full_disk_is_reported_in_one_sentence(words: tuple[str, ...], segment: Path) -> None:
    done = ran(
        *(str(segment) if word == "SEGMENT" else word for word in words), redirect=">/dev/full"
    )
    assert done.returncode == 1
    assert done.stderr == "penstock: cannot write the output: No space left on device\n"


def test_a_closed_pipe_ends_the_command_silently(segment: Path) -> None:
    done = ran("log", "dump", "--deep-iteration", str(segment), redirect="| head -1")
    assert (done.returncode, done.stderr) == (1, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_a_command_with_closed_streams_still_returns_its_exit_code(
    redirect: str, segment: Path
) -> None:
    done = ran("log", "verify", str(segment.parent), redirect=redirect)
    assert done.returncode in {0, 1}
    assert "Traceback" not in done.stdout + done.stderr
    refused = ran("stop", "--dir", str(segment.parent), redirect=redirect)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stdout + refused.stderr
