"""Failures that the caller no longer waits for, and failing callbacks, without a broker."""

import asyncio
import gc
import os
import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, cast

import pytest

from penstock.sdk import delivery
from penstock.sdk.delivery import Delivery
from penstock.sdk.errors import SdkError, SendFailed, UndeliveredRecords
from penstock.sdk.producer import Producer


@pytest.fixture
def producer() -> Iterator[Producer[bytes, bytes]]:
    """A producer whose records all fail after a while."""
    made: Producer[bytes, bytes] = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 300, "log_level": 0}
    )
    yield made
    made.close()


def test_a_failure_after_a_timeout_is_raised_by_flush(producer: Producer[bytes, bytes]) -> None:
    sent = producer.send("t", b"")
    with pytest.raises(TimeoutError):
        sent.result(0.01)
    with pytest.raises(UndeliveredRecords):
        producer.flush()


def test_a_failure_after_a_cancelled_wait_is_raised_by_flush(
    producer: Producer[bytes, bytes],
) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await producer.send("t", b"")

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    with pytest.raises(UndeliveredRecords):
        producer.flush()


def test_a_failing_callback_does_not_block_other_deliveries(
    producer: Producer[bytes, bytes],
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    producer.send("t", b"").when_done(broken)
    with pytest.raises(SendFailed):
        producer.send("t", b"").result(10)
    with pytest.raises(SendFailed):
        producer.send("t", b"").result(10)


def test_a_forked_child_is_refused(producer: Producer[bytes, bytes]) -> None:
    child = os.fork()
    if not child:
        try:
            producer.send("t", b"")
        except SdkError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_closed_event_loops_are_forgotten(producer: Producer[bytes, bytes]) -> None:
    async def wait() -> None:
        with pytest.raises(SendFailed):
            await producer.send("t", b"")

    for _ in range(3):
        asyncio.run(wait())
    assert sum(each.loop.is_closed() for each in delivery._wakers.values()) <= 1


def test_deliveries_are_not_tracked_by_the_garbage_collector() -> None:
    """Tracking would be most of a send's cost; so no delivery may be part of a lasting cycle."""

    class Failing:
        def __init__(self) -> None:
            self.failed: list[Delivery] = []

        def reported(self, sent: Delivery, *_: object) -> SendFailed:
            self.failed.append(sent)
            return SendFailed("orders", 0, 1, "no")

        def want_report(self) -> None:
            pass

    producer = Failing()
    sent = Delivery(producer)
    assert not gc.is_tracked(sent)
    sent(cast("Any", "error"), cast("Any", "message"))
    assert isinstance(sent.failure, SendFailed)
    gone = weakref.ref(producer)
    del producer
    assert gone() is None, "what failed does not keep its producer"


class Service:
    """A program that keeps its deliveries."""

    def __init__(self) -> None:
        self.sent: list[Delivery] = []

    def reported(self, *_: object) -> SendFailed | None:
        return None

    def want_report(self) -> None: ...


def test_a_completed_delivery_does_not_keep_its_producer_alive() -> None:
    service = Service()
    sent = Delivery(service)
    service.sent.append(sent)
    sent(None, cast("Any", "message"))
    assert sent.is_done
    gone = weakref.ref(service)
    del service
    assert gone() is None


@pytest.mark.parametrize("lines", range(1, 9))
def test_a_report_may_arrive_at_any_line_of_when_done(lines: int) -> None:
    """As from the producer's thread."""
    sent, told, passed = Delivery(Service()), list[bool](), 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal passed
        if frame.f_code is not Delivery.when_done.__code__:
            return None
        passed += event == "line"
        if passed >= lines and not sent.is_done and not delivery._lock.locked():
            sent(None, cast("Any", "message"))
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        sent.when_done(lambda: told.append(sent.is_done))
    finally:
        sys.settrace(former)
    if not sent.is_done:
        sent(None, cast("Any", "message"))
    assert told == [True]
