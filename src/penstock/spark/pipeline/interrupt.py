"""Ctrl-C and SIGTERM while the JVM is asked: who hears them must still be able to stop Spark."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def kept_interrupt() -> Iterator[None]:
    """Put back the handler of SIGINT: a Spark context that starts takes it for itself."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def apart(work: Callable[[], T]) -> T:
    """Do it in a thread of its own, and wait.

    Each thread has one connection to the JVM. An exception that a signal raises in the middle of a
    call leaves that connection waiting for the answer, and a `stop` would wait behind it for good.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result()
