"""fsync on other threads, with group commit: requests that wait for one log share one sync.

A `Flush` says what to sync, as a value: the loop makes it, a thread runs it, the loop gets the
result.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeAlias

from penstock.errors import KafkaError, StorageError
from penstock.log.epochs import EPOCHS
from penstock.log.files import Files, LogFile, OutOfFiles, replace
from penstock.log.home import Home

Deliver: TypeAlias = Callable[[Callable[[], None]], object]
"""How a thread hands a call to the owner of the logs: `loop.call_soon_threadsafe`."""

OffLoop: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Does blocking work on a thread, and waits for it: `Flusher.off_loop`."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The files to sync before the recovery point may become `end_offset`."""

    files: Files
    home: Home
    end_offset: int
    generation: int
    """The log's generation: a flush from before a truncation does not cover later writes."""
    handles: tuple[LogFile, ...]
    closed: tuple[str, ...]
    """Names of further files, opened one after the other: there may be thousands of them."""
    names: bool
    """Files were created or removed since the last flush."""
    epochs: bytes | None
    """The leader epochs, if they changed."""

    def run(self) -> None:
        """The blocking part, on any thread.

        Older segments first: if the power fails meanwhile, the log has no hole in front of a newer
        one. No sync while the directory is locked: it takes long, and the loop may wait to rename
        the directory.
        """
        for name in self.closed:
            with self.home.in_use:
                if self.home.is_gone:
                    return
                file = _opened(self.files, self.home.directory / name)
            if file is not None:
                file.sync()
                file.close()
        for handle in self.handles:
            handle.sync()
        with self.home.in_use:
            if self.home.is_gone:
                return
            directory = self.home.directory
            if self.epochs is not None:
                replace(self.files, directory / EPOCHS, self.epochs)
            if self.names:
                self.files.sync_dir(directory)
                self.files.sync_dir(directory.parent)


def _opened(files: Files, path: Path) -> LogFile | None:
    """The file; None if retention has removed it, which may happen at any moment."""
    try:
        return files.open(path)
    except OutOfFiles:
        raise
    except StorageError:
        return files.open(path) if files.exists(path) else None


class Flushable(Protocol):
    """A log as the flusher uses it."""

    def begin_flush(self) -> Flush: ...

    def flushed(self, flush: Flush) -> None: ...

    def fail(self, error: StorageError) -> None: ...


MAX_RUNNING = 16
"""Flushes begun at a time: each holds a handful of files open, and thousands may be due at once."""


class Flusher:
    """Runs flushes on a few threads, at most one at a time for each log.

    Its state belongs to the owner of the logs; the threads only call `Flush.run`.
    """

    _is_closed = False

    def __init__(self, deliver: Deliver, threads: int = 2) -> None:
        self._deliver = deliver
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="flush")
        self._running: set[Flushable] = set()
        self._waiting: dict[Flushable, list[Future[int]]] = {}

    def request(self, log: Flushable) -> Future[int]:
        """Flush what the log holds now; the result is an offset before which all is on disk.

        A request that comes while the log is being synced joins the next round.
        """
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        self._waiting.setdefault(log, []).append(future)
        self._start_waiting()
        return future

    def _start_waiting(self) -> None:
        if self._is_closed:
            return  # the stop of the broker syncs what still waits
        # Until the limit is reached: logs that cannot begin must not block the others.
        while room := MAX_RUNNING - len(self._running):
            startable = (log for log in self._waiting if log not in self._running)
            chosen = list(islice(startable, room))
            if not chosen:
                return
            for log in chosen:
                if log in self._waiting:  # a waiter that failed may have requested other logs
                    self._start(log)

    def _start(self, log: Flushable) -> None:
        waiting = self._waiting.pop(log)
        try:
            flush = log.begin_flush()
        except (StorageError, KafkaError) as error:  # the disk fails, or a batch is damaged
            _refuse(waiting, error)
            return
        self._running.add(log)

        def done(outcome: Future[None]) -> None:
            self._deliver(lambda: self._finish(log, flush, waiting, outcome))

        self._threads.submit(flush.run).add_done_callback(done)

    def _finish(
        self, log: Flushable, flush: Flush, waiting: list[Future[int]], outcome: Future[None]
    ) -> None:
        self._running.discard(log)
        error = outcome.exception()
        if error is not None:
            _refuse(waiting + self._waiting.pop(log, []), error)  # else they wait for ever
            if isinstance(error, StorageError):
                log.fail(error)
            self._start_waiting()
            if not isinstance(error, StorageError):
                raise error
            return
        log.flushed(flush)
        for future in waiting:
            future.set_result(flush.end_offset)
        self._start_waiting()

    def run(self, work: Callable[[], None], on_error: Callable[[StorageError], None]) -> None:
        """Do other blocking work, such as writing a checkpoint, on the same threads."""

        def done(outcome: Future[None]) -> None:
            error = outcome.exception()
            if isinstance(error, StorageError):
                self._deliver(lambda: on_error(error))
            elif error is not None:
                self._deliver(lambda: _rise(error))

        self._threads.submit(work).add_done_callback(done)

    async def off_loop(self, work: Callable[[], None]) -> None:
        """Do other blocking work on the same threads, and wait for it."""
        await asyncio.wrap_future(self._threads.submit(work))

    def close(self) -> None:
        """Wait for running flushes; those that wait are not begun any more."""
        self._is_closed = True
        self._threads.shutdown()


def _rise(error: BaseException) -> None:
    """Raise a bug of a thread on the loop: the thread pool would hide it."""
    raise error


def _refuse(waiting: list[Future[int]], error: BaseException) -> None:
    for future in waiting:
        future.set_exception(error)
