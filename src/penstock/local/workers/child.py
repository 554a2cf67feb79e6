"""A forked process: its reports to the supervisor, and how it notices that the supervisor is gone.

The supervisor has imported everything and runs no thread and no loop, so a fork is safe, takes
milliseconds, and shares the memory of all imports.
"""

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from penstock.broker.startup.state_file import BrokerState
from penstock.broker.until_stopped import Stop
from penstock.errors import ConfigError, KafkaError, StorageError

logger = logging.getLogger(__name__)

EXPECTED = (ConfigError, KafkaError, StorageError, OSError)
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""Signals that the supervisor and its children handle differently."""


class ProcessReport(msgspec.Struct, frozen=True):
    """A report of a process: it is ready, with its state if it is a broker; or why it failed."""

    state: BrokerState | None = None
    failure: str | None = None


class Channel:
    """A process's ends of the pipes: it writes reports to one, and the other closes
    with the supervisor.
    """

    def __init__(self, reports: int, life: int) -> None:
        self._reports, self.life = reports, life

    def send(self, report: ProcessReport) -> None:
        with suppress(OSError):
            os.write(self._reports, msgspec.json.encode(report) + b"\n")


def fork(run: Callable[[Channel], None], life: tuple[int, int]) -> tuple[int, int]:
    """Run `run` in a child. Returns its pid, and the pipe with its reports.

    `life` is a pipe that is never written to: readers see its end when the supervisor ends, however
    that happens.
    """
    incoming, outgoing = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # otherwise both processes would write the buffered output
    # Block signals until the child has its own handlers: with those of the supervisor it would lose
    # a SIGTERM, and the supervisor would wait for it to stop.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(incoming)
        os.close(outgoing)
        raise
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(outgoing)
        return pid, incoming
    code = 1
    try:
        os.close(incoming)
        os.close(life[1])
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGHUP):
            # a terminal sends them to all processes; the supervisor decides
            signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        random.seed()
        code = _run(run, Channel(outgoing, life[0]))
    finally:
        logging.shutdown()
        os._exit(code)


def _run(run: Callable[[Channel], None], channel: Channel) -> int:
    try:
        run(channel)
    except Exception as error:
        cause = alone(error)
        if not isinstance(cause, EXPECTED):
            logger.error("internal error", exc_info=error)
        channel.send(ProcessReport(failure=str(cause) or type(cause).__name__))
        return 1
    return 0


def alone(error: Exception) -> Exception:
    """The first cause inside a task group's error."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def listen_for_stop(channel: Channel, stop: Stop) -> None:
    """Stop on SIGTERM, and when the supervisor is gone: without it, nothing
    restarts this process.
    """
    loop = asyncio.get_running_loop()

    def supervisor_gone() -> None:
        loop.remove_reader(channel.life)
        stop("the supervisor is gone")

    loop.add_signal_handler(signal.SIGTERM, stop, "got SIGTERM")
    loop.add_reader(channel.life, supervisor_gone)
