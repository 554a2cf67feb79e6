"""Iterates ahead of the consumer in a thread: fetching continues while records are decoded."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _Failure:
    """An error to raise in the consumer's thread."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


def ahead(items: Iterator[T], depth: int, interrupt: Callable[[], None]) -> Iterator[T]:
    """The same items; up to `depth` wait ready while one more is being made.

    If the consumer stops early, the thread ends as well: `interrupt` must end its waiting.
    """
    ready: queue.Queue[object] = queue.Queue(depth)
    stopped = threading.Event()

    def work() -> None:
        try:
            for item in items:
                ready.put(item)
                if stopped.is_set():
                    return
            ready.put(_END)
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer
            ready.put(_Failure(error))

    thread = threading.Thread(target=work, name="penstock-fetch", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]  # neither end nor failure
    finally:
        stopped.set()
        interrupt()
        while thread.is_alive():
            # Make room, else the thread would wait forever to put an item.
            while not ready.empty():
                ready.get_nowait()
            thread.join(0.01)
