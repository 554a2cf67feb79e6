"""Ctrl-C stays with whoever has it: a Spark context that starts takes it for itself."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_interrupt() -> Iterator[None]:
    """Put back the handler of SIGINT that was there before the block."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
