"""Pools that run handlers: threads, processes, or tasks of an event loop."""

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias

from penstock.sdk.errors import WorkerError
from penstock.sdk.record import Record

Done: TypeAlias = Callable[[BaseException | None], None]
Handler: TypeAlias = Callable[[Record[Any, Any]], object]
AsyncHandler: TypeAlias = Callable[[Record[Any, Any]], Awaitable[object]]


class Pool(Protocol):
    """Handles at most `size` records at once; the caller must not submit more."""

    size: int

    def submit(self, record: Record[Any, Any], done: Done) -> None:
        """Returns at once; `done` is called from any thread, with what the handler raised."""

    def close(self) -> None:
        """Returns without waiting for handlers that hang."""


class ThreadPool:
    """For handlers that wait or call C code."""

    def __init__(self, handler: Handler, size: int) -> None:
        self._handler, self.size = handler, size
        self._jobs: SimpleQueue[tuple[Record[Any, Any], Done] | None] = SimpleQueue()
        for number in range(size):
            threading.Thread(target=self._work, name=f"penstock-{number}", daemon=True).start()

    def submit(self, record: Record[Any, Any], done: Done) -> None:
        self._jobs.put((record, done))

    def close(self) -> None:
        for _ in range(self.size):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            record, done = job
            try:
                self._handler(record)
            except BaseException as error:  # noqa: BLE001 - the user's handler, `sys.exit` too
                done(error)
            else:
                done(None)


class ProcessPool:
    """For handlers that compute. Handler and records are pickled, so the handler must be a
    module-level function.
    """

    def __init__(self, handler: Handler, size: int) -> None:
        self._handler, self.size = handler, size
        self._executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        # Spawned, not forked: the parent has threads.
        return ProcessPoolExecutor(self.size, mp_context=get_context("spawn"))

    def submit(self, record: Record[Any, Any], done: Done) -> None:
        def finished(future: "Future[None]") -> None:
            if not future.cancelled():
                done(future.exception())

        try:
            future = self._executor.submit(handled, self._handler, record)
        except BrokenProcessPool:  # a process died; records in progress have failed
            self._executor = self._started()
            future = self._executor.submit(handled, self._handler, record)
        future.add_done_callback(finished)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def handled(handler: Handler, record: Record[Any, Any]) -> None:
    """Runs in the worker process. The handler's result stays there, and so does an error that
    cannot be pickled: one that the parent could not read would break the pool and fail the other
    records.
    """
    try:
        handler(record)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        except Exception:  # noqa: BLE001 - for example a constructor that needs other arguments
            raise WorkerError(f"{type(error).__name__}: {error}") from None
        raise


class AsyncioPool:
    """For coroutines: a loop on a thread of its own, with up to `size` tasks."""

    def __init__(self, handler: AsyncHandler, size: int) -> None:
        self._handler, self.size = handler, size
        self._is_closing = False
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._group: asyncio.TaskGroup
        self._main: asyncio.Task[None]
        self._thread_id: int
        threading.Thread(
            target=lambda: asyncio.run(self._run()), name="penstock-tasks", daemon=True
        ).start()
        self._ready.wait()

    def submit(self, record: Record[Any, Any], done: Done) -> None:
        if threading.get_ident() == self._thread_id:  # a finished record starts the next one
            self._start(record, done)
        else:
            self._loop.call_soon_threadsafe(self._start, record, done)

    def close(self) -> None:
        self._is_closing = True
        self._loop.call_soon_threadsafe(self._main.cancel)

    def _start(self, record: Record[Any, Any], done: Done) -> None:
        self._group.create_task(self._handle(record, done))

    async def _handle(self, record: Record[Any, Any], done: Done) -> None:
        try:
            await self._handler(record)
        except BaseException as error:  # also if something that it awaits was cancelled
            if self._is_closing:
                raise
            done(error)
        else:
            done(None)

    async def _run(self) -> None:
        main = asyncio.current_task()
        assert main is not None
        self._loop, self._main = asyncio.get_running_loop(), main
        self._thread_id = threading.get_ident()
        try:
            async with asyncio.TaskGroup() as self._group:
                self._ready.set()
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            return
