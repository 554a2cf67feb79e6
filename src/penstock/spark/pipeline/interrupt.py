"""Handles Ctrl-C and SIGTERM during calls to the JVM, so that Spark can still be stopped."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def restored_sigint() -> Iterator[None]:
    """Restore the handler of SIGINT, which a starting Spark context replaces."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def in_thread(work: Callable[[], T]) -> T:
    """Run the work in a separate thread, and wait for it.

    Each thread has one connection to the JVM. If a signal raises in the middle of a call, that
    connection stays blocked, and a `stop` on it would wait forever.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result()
