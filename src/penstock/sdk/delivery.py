"""The outcome of one send, available later by `result()` or `await`.

A failure that no caller observes is not lost: the producer raises it from `flush` and `close`.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol

import msgspec
from confluent_kafka import KafkaError, Message

from penstock.sdk.errors import SendFailed
from penstock.sdk.record import RecordMetadata

logger = logging.getLogger(__name__)

_lock = threading.Lock()
"""One lock for all: it is held for a few instructions, and one per delivery would cost as much as
the rest of it.
"""


class Delivery(msgspec.Struct, gc=False, eq=False):
    """Get the outcome by `result()`, or by `await` inside an event loop.

    There is one for each record, and a hundred thousand may be queued. The garbage collector would
    visit them again and again, which costs as much as the rest of a send here. So it does not track
    them, and they must be in no reference cycle once they are done.
    """

    producer: "Reporter | None" = None
    number: int = 0
    """The record's number if interceptors or a trace see it; otherwise 0."""
    observed: bool = False
    """A caller has seen the failure, or waits for the outcome."""
    _message: Message | None = None
    """The delivery report, once it has arrived; set last."""
    _error: SendFailed | None = None
    _waiters: list[Callable[[], None]] | None = None

    def __repr__(self) -> str:
        return f"<Delivery {'done' if self.is_done else 'on its way'}>"

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """The delivery report, from librdkafka; a separate callback would cost another object."""
        if error is None and not self.number:
            self.producer = None  # breaks the cycle: the producer may hold this delivery
            self._message = message
            if self._waiters is not None:
                self._call_waiters()
        elif self.producer is not None:
            failed = self.producer.reported(self, error, message)
            self.producer = None  # breaks the cycle: the producer may keep the failure
            self.settle(message, failed)

    @property
    def is_done(self) -> bool:
        return self._message is not None or self._error is not None

    @property
    def failure(self) -> SendFailed | None:
        """Why the send failed, once it is done."""
        return self._error

    @property
    def report(self) -> Message | None:
        """What librdkafka reported, once it is done."""
        return self._message

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the broker's response; raises `SendFailed`, or `TimeoutError`."""
        if not self.is_done:
            done = threading.Event()
            self.when_done(done.set)
            if not done.wait(timeout_s):
                self.observed = False  # a failure from now on is raised by `flush`
                raise TimeoutError(f"no answer within {timeout_s} s")
        return self._outcome()

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        if not self.is_done:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self.when_done(lambda: waker(loop).wake(future))
            try:
                yield from future
            except asyncio.CancelledError:
                self.observed = False
                raise
        return self._outcome()

    def when_done(self, call: Callable[[], None]) -> None:
        """Call `call` on the producer's thread once the outcome is known, or at once if it is."""
        self.observed = True
        with _lock:
            self._waiters = [*(self._waiters or ()), call]
        producer = self.producer  # read once: the report sets it to None on another thread
        if producer is not None:
            producer.want_report()
        if self.is_done:  # after adding the waiter: `settle` sets the outcome, then looks
            self._call_waiters()

    def settle(self, message: Message | None, error: SendFailed | None = None) -> None:
        """Set the outcome, once."""
        self._error = error
        self._message = message
        if self._waiters is not None:
            self._call_waiters()

    def _call_waiters(self) -> None:
        with _lock:
            waiters, self._waiters = self._waiters, None
        for call in waiters or ():
            try:
                call()
            except Exception:  # e.g. its loop is closed; the others must still be called
                logger.exception("a callback for the outcome of a record failed")

    def _outcome(self) -> RecordMetadata:
        self.observed = True
        if self._error is not None:
            raise self._error
        assert self._message is not None
        return metadata_of(self._message)


def metadata_of(message: Message) -> RecordMetadata:
    """The metadata in a delivery report; with acks=0 it has no offset."""
    offset = message.offset()
    kind, at_ms = message.timestamp()
    return RecordMetadata(
        message.topic() or "",
        message.partition() or 0,
        offset if offset is not None and offset >= 0 else None,
        at_ms if kind else None,
    )


class Reporter(Protocol):
    """The methods of a producer that a delivery calls."""

    def reported(
        self, delivery: Delivery, error: KafkaError | None, message: Message, /
    ) -> SendFailed | None: ...

    def want_report(self) -> None: ...


class WakingLoop(Protocol):
    """The methods of an event loop that a waker calls."""

    def is_closed(self) -> bool: ...

    def call_soon_threadsafe(self, callback: Callable[[], object], /) -> object: ...


class Waker:
    """Wakes futures of one loop from other threads, many by one call into the loop."""

    def __init__(self, loop: WakingLoop) -> None:
        self.loop = loop
        self._ready: deque[asyncio.Future[None]] = deque()
        self._is_called = False

    def wake(self, future: "asyncio.Future[None]") -> None:
        if self.loop.is_closed():
            return  # no task can wait in a closed loop
        self._ready.append(future)
        if not self._is_called:
            self._is_called = True
            self.loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._is_called = False  # first, so that later appends schedule another call
        while self._ready:
            future = self._ready.popleft()
            if not future.done():
                future.set_result(None)


_wakers: dict[int, Waker] = {}


def waker(loop: asyncio.AbstractEventLoop) -> Waker:
    """The loop's one waker."""
    found = _wakers.get(id(loop))
    if found is None or found.loop is not loop:  # an id may be reused
        for number, each in list(_wakers.items()):
            if each.loop.is_closed():  # a program may run many loops, one after the other
                _wakers.pop(number, None)
        found = _wakers[id(loop)] = Waker(loop)
    return found
