"""Starts processes, restarts those that die, and ends them in order.

It runs no loop and no thread, so that it can fork at any time, and does little else that could end
it.
"""

import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from penstock.broker.startup.state_file import BrokerState
from penstock.errors import ConfigError
from penstock.local.restarts import restart
from penstock.local.workers.child import Channel, ProcessReport, fork

logger = logging.getLogger(__name__)

STOP_S = 300.0
"""Logs may have much to sync; killed workers would have to recover them at the next start."""
PIPE_BYTES = 1 << 16
INIT = 1


class _Process:
    """One supervised process, across restarts."""

    def __init__(self, name: str, run: Callable[[Channel], None]) -> None:
        self.name, self.run = name, run
        self.pid = 0
        self.incoming = -1
        self.unread = b""
        self.started_ms = 0
        self.start_at_ms: int | None = None
        """When to restart it; None: not scheduled."""
        self.quick_deaths = 0
        self.restarts = 0
        self.is_ready = False
        self.state: BrokerState | None = None
        self.failure: str | None = None


class Supervisor:
    """Use it in the main thread only; it handles that thread's signals.

    `on_change` is called when a restarted process has become ready.
    """

    def __init__(
        self,
        processes: Mapping[str, Callable[[Channel], None]],
        stopping: Sequence[signal.Signals],
        on_change: Callable[[], object],
    ) -> None:
        self._processes = {name: _Process(name, run) for name, run in processes.items()}
        self._stopping, self._on_change = set(stopping), on_change
        self._life = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._wake = os.pipe()
        self._is_stopping = False
        for fd in self._wake:
            os.set_blocking(fd, False)
        for number in (*stopping, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        self._selector.register(self._wake[0], selectors.EVENT_READ)

    def state(self, name: str) -> tuple[BrokerState | None, int]:
        """The last state that a process reported, and its number of restarts."""
        process = self._processes[name]
        return process.state, process.restarts

    def start(self, names: Sequence[str]) -> bool:
        """Start these processes; returns when all are ready, or False if asked to stop meanwhile.

        A failure at this first start raises, because a restart would fail for the same reason.
        """
        starting = [self._processes[name] for name in names]
        for process in starting:
            self._start(process)
        while not all(process.is_ready for process in starting):
            self._turn()
            if self._is_stopping:
                return False
            for process in starting:
                if process.start_at_ms is not None and not process.is_ready:
                    raise ConfigError(process.failure or f"{process.name} died while it started")
        return True

    def run(self) -> None:
        """Supervise until a signal to stop."""
        while not self._is_stopping:
            self._turn()

    def stop(self, names: Sequence[str], seconds: float = STOP_S) -> None:
        """Terminate these processes and wait; those that do not end in time are killed."""
        self._is_stopping = True
        ending = [self._processes[name] for name in names]
        for process in ending:
            _send(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while any(process.pid for process in ending) and time.monotonic() < deadline:
            self._turn()
        for process in ending:
            if process.pid:
                logger.error("%s has not stopped in %.0f s and is killed", process.name, seconds)
                _send(process.pid, signal.SIGKILL)
        while any(process.pid for process in ending):
            self._turn()

    def _start(self, process: _Process) -> None:
        process.start_at_ms, process.is_ready, process.failure = None, False, None
        process.started_ms = _now_ms()
        process.pid, process.incoming = fork(process.run, self._life)
        process.unread = b""
        os.set_blocking(process.incoming, False)
        self._selector.register(process.incoming, selectors.EVENT_READ, process)

    def _turn(self) -> None:
        """Wait for the next event, and handle it."""
        due = [
            each.start_at_ms
            for each in self._processes.values()
            if each.start_at_ms is not None and not self._is_stopping
        ]
        timeout = max(min(due) - _now_ms(), 0) / 1000 if due else 1.0
        for key, _ in self._selector.select(min(timeout, 1.0)):
            if key.data is None:
                self._signalled()
            else:
                self._read(key.data)
        self._reap()
        for process in self._processes.values():
            if (
                process.start_at_ms is not None
                and process.start_at_ms <= _now_ms()
                and not self._is_stopping
            ):
                process.restarts += 1
                try:
                    self._start(process)
                except OSError as error:  # no memory, or too many processes: the others continue
                    process.failure = f"it cannot be started: {error.strerror}"
                    self._start_later(process, process.failure)

    def _signalled(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self._wake[0], PIPE_BYTES):
                if number in self._stopping and not self._is_stopping:
                    logger.info("stopping: got %s", signal.Signals(number).name)
                    self._is_stopping = True

    def _read(self, process: _Process) -> None:
        try:
            data = os.read(process.incoming, PIPE_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(process.incoming)
            os.close(process.incoming)
            process.incoming = -1
            return
        *lines, process.unread = (process.unread + data).split(b"\n")
        for line in lines:
            report = msgspec.json.decode(line, type=ProcessReport)
            if report.failure is not None:
                process.failure = report.failure
            else:
                process.is_ready, process.state = True, report.state
                if process.restarts:
                    logger.info("%s is back (pid %d)", process.name, process.pid)
                    self._on_change()

    def _reap(self) -> None:
        for process in self._processes.values():
            if not process.pid:
                continue
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                self._ended(process, os.waitstatus_to_exitcode(status))
        if os.getpid() == INIT:
            self._reap_orphans()

    def _reap_orphans(self) -> None:
        """Reap the orphaned services of a killed worker, which PID 1 of a container inherits."""
        own = {each.pid: each for each in self._processes.values() if each.pid}
        with suppress(ChildProcessError):  # there are no children
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid in own:  # it died after the check above
                    self._ended(own[pid], os.waitstatus_to_exitcode(status))

    def _ended(self, process: _Process, code: int) -> None:
        if process.incoming >= 0:
            self._read(process)  # it may have reported why
        if process.incoming >= 0:
            self._selector.unregister(process.incoming)
            os.close(process.incoming)
            process.incoming = -1
        pid, process.pid, process.is_ready = process.pid, 0, False
        if not self._is_stopping:
            self._start_later(process, f"pid {pid}: {process.failure or _ending(code)}")

    def _start_later(self, process: _Process, why: str) -> None:
        now_ms = _now_ms()
        again = restart(now_ms - process.started_ms, process.quick_deaths)
        process.quick_deaths = again.quick_deaths
        process.start_at_ms = now_ms + again.delay_ms
        if again.is_loop:
            logger.error(
                "%s has died %d times in a row, soon after its start; the last time, %s; "
                "the next start is in %g s, and the other processes go on",
                process.name,
                again.quick_deaths,
                why,
                again.delay_ms / 1000,
            )
        else:
            logger.error("%s died and is started again: %s", process.name, why)


def _ending(code: int) -> str:
    if code >= 0:
        return f"it ended with code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:  # most real-time signals have no name
        return f"it was ended by signal {-code}"


def _send(pid: int, number: signal.Signals) -> None:
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
