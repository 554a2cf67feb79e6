"""A process that outlives its starter, identified by its pid and start time."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.broker.startup.process_start import process_start
from penstock.errors import ConfigError

POLL_S = 0.02

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Children that have not been reaped. Dropping a live Popen object would raise a warning."""


class StartedProcess(msgspec.Struct, frozen=True):
    """Pid and start time: the system reuses a pid after its process has ended."""

    pid: int
    began: str

    def is_alive(self) -> bool:
        return start_time(self.pid) == self.began


def start(command: Sequence[str], output: Path, *, tied: bool = False) -> StartedProcess:
    """Start the command in its own session; its output is appended to `output`.

    If `tied`, the process ends with this one, even if this one is killed, where the system has
    `setpriv`.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    if tied and (setpriv := shutil.which("setpriv")):
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with output.open("ab") as log:
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


def start_time(pid: int) -> str | None:
    """When a process started; None if it has ended, even if it is still a zombie."""
    _reap(pid)
    began = process_start(pid)
    if began is None:
        _reap(pid)  # it ended meanwhile
    return began


def _reap(pid: int) -> None:
    """Wait for an ended child of ours, which is a zombie until then."""
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


def last_line(output: Path, since: int = 0) -> str:
    """The last line of output, without the program name; `since`: the size of the file before."""
    try:
        with output.open("rb") as file:
            file.seek(since)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return lines[-1].removeprefix("penstock: ") if lines else "it printed nothing"
