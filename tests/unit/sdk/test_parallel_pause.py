"""Which partitions a full buffer pauses, and until when, with a client that, like librdkafka, keeps
pauses beyond an assignment.
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message, TopicPartition

from penstock.sdk.parallel.consumer import Again, ParallelConsumer
from penstock.sdk.parallel.pool import ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.record import Record
from penstock.testing.clock import ManualClock

Raw = Record[bytes, bytes]

RECORDS = 50
IDLE_POLLS = 500
"""After this many polls without a record, no more will come."""


class Client:
    """Two partitions of a group, with `RECORDS` records each."""

    def __init__(self) -> None:
        self.positions = {0: 0, 1: 0}
        self.committed_at = {0: 0, 1: 0}
        self.paused: set[int] = set()
        self.on_pause: Callable[[], None] = lambda: None
        self.on_idle: Callable[[], None] = lambda: None
        self.at_next_poll: Callable[[], None] = lambda: None
        self.idle_polls = 0
        self.on: dict[str, Any] = {}

    def subscribe(self, _topics: list[str], **callbacks: Any) -> None:
        self.on = callbacks
        self.at_next_poll = self.assign

    def assign(self) -> None:
        self.positions = dict(self.committed_at)
        self.on["on_assign"](self, [TopicPartition("t", each) for each in self.positions])

    def give_up(self, how: str) -> None:
        self.on[how](self, [TopicPartition("t", each) for each in self.positions])
        self.assign()

    def poll(self, timeout_s: float) -> Message | None:
        act, self.at_next_poll = self.at_next_poll, lambda: None
        act()
        found = self.consume(1, 0)
        if found:
            self.idle_polls = 0
            return found[0]
        threading.Event().wait(min(timeout_s, 0.001))
        self.idle_polls += 1
        if self.idle_polls > IDLE_POLLS:
            self.on_idle()
        return None

    def consume(self, most: int, _timeout_s: float) -> list[Message]:
        found: list[Message] = []
        for each in sorted(self.positions.keys() - self.paused):
            while self.positions[each] < RECORDS and len(found) < most:
                found.append(Message(topic="t", partition=each, offset=self.positions[each]))
                self.positions[each] += 1
        return found

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused |= {each.partition for each in partitions}
        self.on_pause()

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {each.partition for each in partitions}

    def seek(self, to: TopicPartition) -> None:
        self.positions[to.partition] = to.offset

    def commit(self, *, offsets: list[TopicPartition], **_: object) -> list[TopicPartition]:
        self.committed_at |= {each.partition: each.offset for each in offsets}
        return offsets

    def committed(self, partitions: list[TopicPartition], _: float) -> list[TopicPartition]:
        return [
            TopicPartition("t", e.partition, self.committed_at[e.partition]) for e in partitions
        ]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, RECORDS

    def close(self) -> None: ...


class QuickClock(ManualClock):
    """Advances with each reading, so that a buffer does not stay full for long."""

    def monotonic_ms(self) -> int:
        self.advance(50)
        return super().monotonic_ms()


def consumer_of(
    client: Client, handler: Callable[[Raw], object], **more: Any
) -> ParallelConsumer[bytes, bytes]:
    consumer: ParallelConsumer[bytes, bytes] = ParallelConsumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0},
        ["t"],
        ThreadPool(handler, 2),
        order=Order.PARTITION,
        most_buffered=20,
        **more,
    )
    consumer.client.close()
    made: Any = client
    consumer._commits.client = made
    client.on_idle = consumer.stop
    return consumer


@pytest.mark.parametrize("how", ["on_revoke", "on_lost"])
def test_a_paused_partition_resumes_after_a_rebalance(how: str) -> None:
    client, handled, is_given_up = Client(), set[tuple[int, int]](), threading.Event()

    def handle(record: Raw) -> None:
        is_given_up.wait(10)
        handled.add((record.partition, record.offset))

    def give_up() -> None:
        is_given_up.set()
        client.give_up(how)

    def paused() -> None:
        client.at_next_poll = give_up
        client.on_pause = lambda: None

    client.on_pause = paused
    consumer_of(client, handle, clock=QuickClock()).run()
    assert is_given_up.is_set(), "it was paused"
    assert handled == {(at, offset) for at in (0, 1) for offset in range(RECORDS)}


def test_a_nacked_record_blocks_its_own_partition_only() -> None:
    """Records beyond its partition's share of the buffer are dropped and read again."""
    client, clock, handled, buffered = Client(), QuickClock(), list[tuple[int, int]](), [0]

    def handle(record: Raw) -> None:
        with consumer._changed:
            buffered.append(consumer._buffered)
        of_1 = sum(at == 1 for at, _ in handled)
        if (record.partition, record.offset) == (0, 0) and of_1 < RECORDS:
            raise ValueError
        handled.append((record.partition, record.offset))
        if of_1 == RECORDS - 1:
            clock.advance(10**9)

    consumer = consumer_of(client, handle, clock=clock, on_failure=lambda *_: Again(10**9))
    consumer.run()
    assert handled[:RECORDS] == [(1, offset) for offset in range(RECORDS)]
    assert handled[RECORDS:] == [(0, offset) for offset in range(RECORDS)]
    assert max(buffered) <= 20
    assert client.committed_at == {0: RECORDS, 1: RECORDS}


@pytest.mark.parametrize(("delay_ms", "lost"), [(100, 0), (60_000, 1)])
def test_records_committed_before_handling_are_handled_after_a_nacked_record(
    delay_ms: int, lost: int
) -> None:
    """Only a record whose retry would come too late is lost."""
    client, handled, tried = Client(), list[int](), set[int]()
    del client.positions[1], client.committed_at[1]

    def handle(record: Raw) -> None:
        if record.offset == 0 and not tried:
            tried.add(0)
            consumer.stop()
            raise ValueError
        handled.append(record.offset)

    consumer = consumer_of(
        client, handle, commit_first=True, drain_s=5, on_failure=lambda *_: Again(delay_ms)
    )
    consumer.run()
    assert handled == list(range(lost, client.committed_at[0]))
    assert len(handled) > 1
