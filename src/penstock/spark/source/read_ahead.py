"""Work a step ahead of its user, in a thread: fetching goes on while records are decoded."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _Failure:
    """An error on its way from the thread to the one who waits for the next item."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


def ahead(items: Iterator[T], depth: int, interrupt: Callable[[], None]) -> Iterator[T]:
    """The same items, of which up to `depth` wait ready and one more is being made.

    Whoever stops early ends the thread as well: `interrupt` wakes it from its waiting.
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
        except BaseException as error:  # noqa: BLE001 - raised again where the items are used
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
            # Make room, else it would wait for ever to hand over what nobody takes any more.
            while not ready.empty():
                ready.get_nowait()
            thread.join(0.01)
