"""Signals while a call to Spark is running."""

import os
import signal
import threading
from types import FrameType

import pytest

from penstock.spark.pipeline.interrupt import in_thread, restored_sigint

ENOUGH: dict[str, int] = {}


class Stopped(BaseException):
    pass


def test_the_result_of_work_in_a_thread_is_returned() -> None:
    assert in_thread(lambda: threading.current_thread() is not threading.main_thread())
    with pytest.raises(KeyError, match="x"):
        in_thread(lambda: ENOUGH["x"])


def test_a_signal_is_handled_while_the_work_continues() -> None:
    """The waiting thread is free: it need not wait for the work."""
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        go_on.wait(30)
        ended.set()

    def received(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGUSR1, received)
    try:
        with pytest.raises(Stopped):
            in_thread(work)
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGUSR1, before)
        go_on.set()
    assert ended.wait(30)


def test_the_handler_of_ctrl_c_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with restored_sigint():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before
