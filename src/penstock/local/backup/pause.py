"""Pauses a running broker for a backup, and makes sure that it continues.

SIGSTOP stops all threads of a process between two system calls, so the files are as `kill -9` would
leave them. A guard process continues the broker when this process ends, even by `kill -9`.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from penstock.broker.startup.state_file import BrokerState
from penstock.errors import ConfigError

STOP_S, POLL_S = 5.0, 0.001
LONGEST_S = 10.0
"""A longer pause would time out sessions of groups and workers."""

GUARD = 'pids=; while read -r pid; do pids="$pids $pid"; done; kill -CONT $pids'
"""Each pid is written before its process is stopped. `read` fails when the pipe is closed, by us or
because we ended.
"""


def children(state: BrokerState) -> list[int]:
    """With workers, the child processes of the stopped supervisor, which write to the broker's
    files.

    They are read from the system, because a recorded worker may have ended and its pid may belong
    to another process now.
    """
    if not state.workers:
        return []
    listed = Path(f"/proc/{state.pid}/task/{state.pid}/children")
    if listed.exists():
        return [int(each) for each in listed.read_text().split()]
    # This misses the owner of the metadata store, but that writes only at the request of workers.
    return [each.pid for each in state.workers]


@contextmanager
def paused(state: BrokerState) -> Iterator[None]:
    """Pause the broker during the block, which must take less than `LONGEST_S`."""
    if not state.is_alive():
        raise ConfigError(f"the broker (pid {state.pid}) has just ended: try again")
    if os.getpid() in {state.pid, *(each.pid for each in state.workers)}:
        raise ConfigError("a process cannot back up its own broker: stop the broker first")
    if state.pid == 1:
        raise ConfigError(
            "the broker is process 1 of its container, which nothing in there can pause: run the "
            "container with an init process (--init, or `init: true` in a compose file), or stop "
            "the broker for the backup"
        )
    guard = subprocess.Popen(
        ["/bin/sh", "-c", GUARD],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that Ctrl-C does not reach the guard
    )
    assert guard.stdin is not None
    stopped: list[int] = []
    try:
        with _limited():
            # Stop the supervisor first, so that it cannot start other workers.
            _stop([state.pid], stopped, guard.stdin)
            _stop(children(state), stopped, guard.stdin)
            yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)
        guard.stdin.close()
        guard.wait()
    if not state.is_alive():
        raise ConfigError(f"the broker (pid {state.pid}) ended during the backup: try again")


@contextmanager
def _limited() -> Iterator[None]:
    def too_long(_number: int, _frame: object) -> None:
        raise ConfigError(
            f"the broker was paused for {LONGEST_S:g} seconds and goes on now; its directories "
            "take too long to read: stop it for the backup"
        )

    former = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _stop(pids: Sequence[int], stopped: list[int], guard: IO[bytes]) -> None:
    for pid in pids:
        guard.write(b"%d\n" % pid)
        guard.flush()
        stopped.append(pid)
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            raise ConfigError(f"process {pid} of the broker has just ended: try again") from None
        except PermissionError:
            raise ConfigError(
                f"process {pid} belongs to another user: run the backup as the broker's user"
            ) from None
    deadline = time.monotonic() + STOP_S
    while not all(map(_is_still, pids)):
        if time.monotonic() > deadline:
            raise ConfigError("the broker could not be paused: stop it for the backup")
        time.sleep(POLL_S)


def _is_still(pid: int) -> bool:
    """Whether the process is stopped, or is a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        shown = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        state = shown.stdout.strip()
    return state[:1] in {"T", "t", "Z"}
