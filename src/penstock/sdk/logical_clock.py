"""A logical clock in a header: an order among records of several partitions and producers.

Kafka orders the records of one partition. Where that is not enough, and a single partition is too
slow, each producer counts its sends and moves its count beyond every record that it has read
(Lamport's clock): a record that was caused by another always has the higher count.
"""

import threading
from dataclasses import replace
from typing import Any, Final, NamedTuple

from penstock.sdk.interceptor import ConsumerInterceptor, ProducerInterceptor
from penstock.sdk.record import Outgoing, Record

CLOCK: Final = "penstock-clock"
"""`<count>:<node>`, as text."""

FURTHEST: Final = 10**18
"""No real clock counts this far. A clock that followed such a header would soon exceed what readers
accept, and so would all clocks that follow it.
"""


class LogicalTime(NamedTuple):
    """Compares by count; the node decides between equals, so that all see one order."""

    ticks: int
    node: str


class LogicalClock(ProducerInterceptor, ConsumerInterceptor):
    """Give the same clock to the producer and the consumers of a program as an interceptor."""

    def __init__(self, node: str, count: int = 0) -> None:
        self._node, self._count = node, count
        self._lock = threading.Lock()

    def tick(self) -> LogicalTime:
        with self._lock:
            self._count += 1
            return LogicalTime(self._count, self._node)

    def observe(self, time: LogicalTime) -> None:
        if time.ticks < FURTHEST:
            with self._lock:
                self._count = max(self._count, time.ticks)

    def on_send(self, record: Outgoing[Any, Any], /) -> Outgoing[Any, Any]:
        time = self.tick()
        header = CLOCK, f"{time.ticks}:{time.node}".encode()
        others = [each for each in record.headers if each[0] != CLOCK]
        return replace(record, headers=(*others, header))

    def on_consume(self, records: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
        for each in records:
            time = logical_time(each)
            if time is not None:
                self.observe(time)
        return records


def logical_time(record: Record[Any, Any]) -> LogicalTime | None:
    """The time in the header; None if there is none, or it cannot be read."""
    text = (record.header(CLOCK) or b"").decode(errors="replace")
    count, colon, node = text.partition(":")
    if not colon or not (count.isascii() and count.isdecimal()) or len(count) > 19:
        return None
    return LogicalTime(int(count), node)
