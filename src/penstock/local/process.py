"""A process that outlives the command that started it: known by its pid and the moment it began."""

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
"""Those that were started here and not yet seen to end. Dropped earlier, each would complain."""


class Started(msgspec.Struct, frozen=True):
    """A pid alone is not enough: the system hands it out again after the process has gone."""

    pid: int
    began: str

    def is_alive(self) -> bool:
        return beginning(self.pid) == self.began


def start(command: Sequence[str], output: Path, *, tied: bool = False) -> Started:
    """Start it in a session of its own; what it prints is added to `output`.

    Tied to us it ends when we do, even if we are killed; where the system cannot, it goes on.
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
    began = beginning(process.pid)
    if began is None:
        raise ConfigError(f"{command[0]} ended at once: {last_line(output)}")
    return Started(process.pid, began)


def beginning(pid: int) -> str | None:
    """When a process began; None if it has ended, even if nobody has waited for it."""
    _reap(pid)
    began = process_start(pid)
    if began is None:
        _reap(pid)  # it ended since we looked
    return began


def _reap(pid: int) -> None:
    """A child of ours that has ended stays a zombie until it is waited for."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]


def end(started: Started, *, kill: bool, patience_s: float) -> None:
    """SIGTERM, or SIGKILL; returns when it is gone."""
    if not started.is_alive():
        return
    with suppress(ProcessLookupError):
        os.kill(started.pid, signal.SIGKILL if kill else signal.SIGTERM)
    for _ in turns(patience_s):
        if not started.is_alive():
            return
    raise ConfigError(f"the process {started.pid} does not stop; --kill ends it")


def turns(seconds: float) -> Iterator[None]:
    """Turns of a wait for another process, which tells us nothing when it is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(POLL_S)


def last_line(output: Path, since: int = 0) -> str:
    """The last thing that a process said, without its name; `since`: the size before it began."""
    try:
        with output.open("rb") as file:
            file.seek(since)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return lines[-1].removeprefix("penstock: ") if lines else "it said nothing"
