"""A thread for handlers, which can be abandoned if a handler hangs."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

T = TypeVar("T")

END_S: Final = 1.0


class HandlingThread(Generic[T]):
    """Calls run one after the other, each with the thread's event loop.

    The thread is a daemon, unlike those of executors: the process ends without waiting for it.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[asyncio.Runner], T], Future[T]] | None]
        self._calls = SimpleQueue()
        self._last: Future[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-handler", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[asyncio.Runner], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._last = future
        self._calls.put((call, future))
        return future

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while (job := self._calls.get()) is not None:
                call, future = job
                try:
                    result = call(runner)
                except BaseException as error:  # noqa: BLE001 - raised by `Future.result`
                    future.set_exception(error)
                else:
                    future.set_result(result)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the thread, but waits for no call that hangs."""
        self._calls.put(None)
        if self._last is None or self._last.done():
            self._thread.join(END_S)
