"""A process that outlives its starter, identified by its pid and start time."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from penstock.errors import ConfigError
from penstock.local import bounded_file
from penstock.process_start import process_start

POLL_S = 0.02
WRITER_S = 5

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Children that have not been reaped. Dropping a live Popen object would cause a warning."""

_writers: dict[Path, subprocess.Popen[bytes]] = {}
"""The writer processes of bounded outputs."""


class StartedProcess(msgspec.Struct, frozen=True):
    """Pid and start time, because the system reuses pids."""

    pid: int
    began: str

    def is_alive(self) -> bool:
        return start_time(self.pid) == self.began


def start(
    command: Sequence[str], output: Path, *, tied: bool = False, bounded: bool = False
) -> StartedProcess:
    """Start the command in its own session; its output is appended to `output`.

    If `tied`, the process ends with this one, even if this one is killed, where the system has
    `setpriv`. If `bounded`, the output goes through a process that keeps the file small.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    if tied and (setpriv := shutil.which("setpriv")):
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with _bounded(output) if bounded else output.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    began = start_time(process.pid)
    if began is None:
        raise ConfigError(f"{command[0]} ended at once: {last_line(output)}")
    return StartedProcess(process.pid, began)


def _bounded(output: Path) -> IO[bytes]:
    """A pipe to a process that writes the file, and that ends with the pipe's last holder."""
    output.touch()  # raises if the file cannot be written
    _finish(output)
    writer = subprocess.Popen(
        [sys.executable, "-I", "-S", bounded_file.__file__, output],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _writers[output] = writer
    assert writer.stdin is not None
    return writer.stdin


def _finish(output: Path) -> None:
    """Wait for the writer of a file whose process has ended."""
    writer = _writers.pop(output, None)
    if writer is not None:
        with suppress(subprocess.TimeoutExpired):
            writer.wait(WRITER_S)


def start_time(pid: int) -> str | None:
    """When a process started; None if it has ended, even if it is still a zombie."""
    _reap(pid)
    began = process_start(pid)
    if began is None:
        _reap(pid)  # it ended in the meantime
    return began


def _reap(pid: int) -> None:
    """Reap an ended child of ours, which is a zombie until then."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]


def end(started: StartedProcess, *, kill: bool, patience_s: float) -> None:
    """Send SIGTERM or SIGKILL; returns when the process has ended."""
    if not started.is_alive():
        return
    with suppress(ProcessLookupError):
        os.kill(started.pid, signal.SIGKILL if kill else signal.SIGTERM)
    for _ in polls(patience_s):
        if not started.is_alive():
            return
    raise ConfigError(f"process {started.pid} does not stop; use --kill")


def polls(seconds: float) -> Iterator[None]:
    """Poll for at most `seconds`: another process cannot notify us when it is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(POLL_S)


def last_line(output: Path, since: int = 0, *, is_shared: bool = False) -> str:
    """The last line of output, without the program's name; `since` is the file's earlier size.

    `is_shared`: a running broker may log there too, so lines that begin with the program's name are
    preferred.
    """
    _finish(output)
    try:
        with output.open("rb") as file:
            file.seek(since)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    if is_shared:
        lines = [each for each in lines if each.startswith("penstock: ")] or lines
    return lines[-1].removeprefix("penstock: ") if lines else "it printed nothing"
