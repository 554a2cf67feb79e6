"""The parallel consumer and its pools, with a fake client in place of librdkafka's."""

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from queue import Queue
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock.sdk.delivery import Delivery
from penstock.sdk.errors import ConsumerFailed
from penstock.sdk.failure import Tries
from penstock.sdk.interceptor import ConsumerInterceptor
from penstock.sdk.logical_clock import LogicalClock
from penstock.sdk.parallel import commits
from penstock.sdk.parallel.consumer import Again, OnFailure, ParallelConsumer, raise_failure
from penstock.sdk.parallel.pool import AsyncioPool, Pool, ProcessPool, ThreadPool
from penstock.sdk.parallel.progress import LaneProgress
from penstock.sdk.parallel.saved import to_metadata
from penstock.sdk.parallel.work import Order
from penstock.sdk.record import Record
from penstock.testing.clock import ManualClock
from support.sdk.exiting import exit_at_0
from support.sdk.refusing import refuse_at_0
from support.sdk.waiting import wait_until

Raw = Record[bytes, bytes]


class Client:
    """One partition with these offsets, and its committed offset."""

    def __init__(self, offsets: range, committed: int) -> None:
        self.messages = [Message(topic="t", partition=0, offset=each) for each in offsets]
        self.at = TopicPartition("t", 0, committed)
        self.end = offsets.stop
        self.when_empty: Callable[[], None] = lambda: None
        self._assign: Callable[[object, list[TopicPartition]], None] | None = None

    def subscribe(self, _topics: list[str], *, on_assign: Any, **_: object) -> None:
        self._assign = on_assign

    def poll(self, _timeout_s: float) -> Message | None:
        assign, self._assign = self._assign, None
        if assign is not None:
            assign(self, [self.at])
        if self.messages:
            return self.messages.pop(0)
        self.when_empty()
        return None

    def consume(self, most: int, _timeout_s: float) -> list[Message]:
        found, self.messages = self.messages[:most], self.messages[most:]
        return found

    def commit(self, *, offsets: list[TopicPartition], **_: object) -> list[TopicPartition]:
        (self.at,) = offsets
        return offsets

    def committed(self, _partitions: object, _timeout_s: float) -> list[TopicPartition]:
        return [self.at]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, self.end

    def resume(self, _partitions: object) -> None: ...

    def close(self) -> None: ...


def consumer_of(
    client: Client,
    handler: Callable[[Raw], object] = lambda _: None,
    *,
    pool: Pool | None = None,
    commit_first: bool = False,
    on_failure: OnFailure = raise_failure,
    **more: Any,
) -> ParallelConsumer[bytes, bytes]:
    consumer: ParallelConsumer[bytes, bytes] = ParallelConsumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0},
        ["t"],
        pool or ThreadPool(handler, 1),
        commit_first=commit_first,
        on_failure=on_failure,
        **more,
    )
    consumer.client.close()
    made: Any = client
    consumer._commits.client = made
    return consumer


def test_records_committed_before_handling_are_handled_before_the_end() -> None:
    handled: list[int] = []

    def handle(record: Raw) -> None:
        handled.append(record.offset)
        consumer.stop()

    client = Client(range(300), 0)
    consumer = consumer_of(client, handle, commit_first=True)
    consumer.run()
    assert handled == list(range(client.at.offset))
    assert len(handled) < 300


def test_a_record_committed_before_handling_may_become_a_dead_letter() -> None:
    failed: list[int] = []

    def refuse(_: Raw) -> None:
        raise ValueError

    def redirect(record: Raw, _error: BaseException, _tries: Tries) -> Delivery:
        failed.append(record.offset)
        if len(failed) == 3:
            consumer.stop()
        delivery = Delivery()
        delivery.settle(record.message)
        return delivery

    consumer = consumer_of(Client(range(3), 0), refuse, commit_first=True, on_failure=redirect)
    consumer.run()
    assert failed == [0, 1, 2]


def test_offsets_finished_beyond_the_end_of_a_log_are_handled_when_they_are_written_again() -> None:
    handled: list[int] = []

    def handle(record: Raw) -> None:
        handled.append(record.offset)
        if record.offset == 5:
            consumer.stop()

    before = LaneProgress(0)
    for offset in range(6):
        before.start(offset)
    for offset in (1, 2, 4, 5):
        before.finish(offset)
    client = Client(range(6), 0)
    client.at = TopicPartition("t", 0, 0, to_metadata(before.pages()) or "")
    client.end = 4
    consumer = consumer_of(client, handle)
    consumer.run()
    assert handled == [0, 3, 4, 5]


def test_a_record_that_fails_during_a_drain_is_not_waited_for() -> None:
    """Another consumer makes its next attempt; a rebalance would wait for it in vain."""

    def refuse(_: Raw) -> None:
        consumer.stop()
        time.sleep(0.2)
        raise ValueError

    client = Client(range(1), 0)
    consumer = consumer_of(client, refuse, on_failure=lambda *_: Again(60_000))
    began_s = time.monotonic()
    consumer.run()
    assert time.monotonic() - began_s < consumer._drain_s
    assert client.at.offset == 0, "it is not done"


def test_records_that_wait_for_their_next_attempt_do_not_block_others() -> None:
    """However many there are, up to the limit of the buffer."""
    handled: list[int] = []

    def handle(record: Raw) -> None:
        if record.offset < 50:
            raise ValueError
        handled.append(record.offset)
        if len(handled) == 10:
            consumer.stop()

    consumer = consumer_of(
        Client(range(100), 0), handle, on_failure=lambda *_: Again(60_000), redo_at_most=20
    )
    consumer.run()
    assert handled[:10] == list(range(50, 60))


def test_the_number_of_concurrent_attempts_is_limited_by_the_workers() -> None:
    running, most, attempts = 0, 0, Counter[int]()

    async def handle(record: Raw) -> None:
        nonlocal running, most
        attempts[record.offset] += 1
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        if attempts[record.offset] == 1:
            raise ValueError
        if attempts.total() == 60:
            consumer.stop()

    consumer = consumer_of(
        Client(range(30), 0),
        pool=AsyncioPool(handle, 2),
        order=Order.NONE,
        on_failure=lambda *_: Again(50),
    )
    consumer.run()
    assert most == 2


def test_a_record_that_fails_after_its_partition_was_lost_is_left_to_the_new_owner() -> None:
    is_lost, failed = threading.Event(), list[int]()

    def handle(_: Raw) -> None:
        is_lost.wait(30)
        raise ValueError

    def lose() -> None:
        consumer._lost(None, [TopicPartition("t", 0)])
        is_lost.set()
        wait_until(lambda: not consumer._work.in_progress, "the handler ends")
        consumer.stop()

    def fail(record: Raw, _error: BaseException, _tries: Tries) -> Again:
        failed.append(record.offset)
        return Again(0)

    client = Client(range(1), 0)
    consumer = consumer_of(client, handle, on_failure=fail)
    client.when_empty = lose
    consumer.run()
    assert not failed


def test_workers_respect_the_repetition_limit_while_pages_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crash at that moment must not repeat records of a commit that was not sent yet."""
    monkeypatch.setattr(commits, "to_metadata", lambda _: None)  # always too long
    unacknowledged: list[int] = []

    class Pages:
        def write(self, *_: object) -> None:
            with consumer._changed:
                unacknowledged.append(consumer._commits.unacknowledged)
            consumer.stop()

        def close(self) -> None: ...

    clock = ManualClock()  # otherwise a commit may be due by time, with fewer records
    consumer = consumer_of(Client(range(100), 0), redo_at_most=20, clock=clock)
    made: Any = Pages()
    consumer._commits._overflow = made
    consumer.run()
    assert unacknowledged[0] >= 20 // 4


class Rebalancing(Client):
    """Refuses the first commit, and supports seeking back."""

    def __init__(self, refusal: int) -> None:
        super().__init__(range(5), 0)
        self.all, self._refusals = list(self.messages), [refusal]

    def commit(self, *, offsets: list[TopicPartition], **more: object) -> list[TopicPartition]:
        if self._refusals:
            raise KafkaException(KafkaError(self._refusals.pop()))
        return super().commit(offsets=offsets, **more)

    def seek(self, to: TopicPartition) -> None:
        self.messages = self.all[to.offset :]


def test_records_whose_commit_a_rebalance_refuses_are_read_again() -> None:
    handled: list[int] = []

    def handle(record: Raw) -> None:
        handled.append(record.offset)
        if record.offset == 4:
            consumer.stop()

    client = Rebalancing(KafkaError.REBALANCE_IN_PROGRESS)
    consumer = consumer_of(client, handle, commit_first=True)
    consumer.run()
    assert handled == [0, 1, 2, 3, 4]
    assert client.at.offset == 5


def test_records_whose_commit_is_refused_for_good_are_not_handled() -> None:
    handled: list[Raw] = []
    client = Rebalancing(KafkaError.GROUP_AUTHORIZATION_FAILED)
    consumer = consumer_of(client, handled.append, commit_first=True)
    with pytest.raises(ConsumerFailed, match="not handled"):
        consumer.run()
    assert not handled


def test_a_stopping_consumer_requests_nothing_for_newly_assigned_partitions() -> None:
    """A client that is closing does not answer: `run` would wait, and fail."""

    class Closing(Client):
        def close(self) -> None:
            consumer._assigned(self, [TopicPartition("t", 1)])

        def committed(self, partitions: Any, timeout_s: float) -> list[TopicPartition]:
            if partitions[0].partition == 1:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return super().committed(partitions, timeout_s)

    consumer = consumer_of(Closing(range(1), 0), lambda _: consumer.stop())
    consumer.run()


class EvenOnes(ConsumerInterceptor):
    """Drops records with odd offsets, and counts commits."""

    def __init__(self) -> None:
        self.committed = 0

    def on_consume(self, records: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
        return [each for each in records if each.offset % 2 == 0]

    def on_commit(self, offsets: Mapping[tuple[str, int], int], /) -> None:
        self.committed = offsets["t", 0]


def test_interceptors_see_records_before_handlers_and_commits() -> None:
    handled: list[int] = []
    clock, even = LogicalClock("here"), EvenOnes()

    def handle(record: Raw) -> None:
        handled.append(record.offset)
        if record.offset == 8:
            consumer.stop()

    client = Client(range(9), 0)
    client.messages[4] = Message(
        topic="t", partition=0, offset=4, headers=[("penstock-clock", b"70:there")]
    )
    consumer = consumer_of(client, handle, interceptors=[clock, even])
    consumer.run()
    assert handled == [0, 2, 4, 6, 8]
    assert client.at.offset == even.committed == 9
    assert clock.tick().ticks == 71


def test_a_recreated_log_is_read_from_its_start() -> None:
    handled: list[int] = []

    def handle(record: Raw) -> None:
        handled.append(record.offset)
        if len(handled) == 3:
            consumer.stop()

    client = Client(range(3), 10_000)
    consumer = consumer_of(client, handle)
    consumer.run()
    assert handled == [0, 1, 2]
    assert client.at.offset == 3


def exit_in_thread(_: Raw) -> None:
    sys.exit(1)


async def be_cancelled(_: Raw) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ThreadPool(exit_in_thread, 1), "SystemExit"),
        (lambda: AsyncioPool(be_cancelled, 1), "CancelledError"),
        (lambda: ProcessPool(exit_at_0, 1), "BrokenProcessPool"),
    ],
    ids=["threads", "tasks", "processes"],
)
def test_a_worker_that_dies_fails_its_record_and_the_next_is_handled(
    make: Callable[[], Pool], expected: str
) -> None:
    pool, reported = make(), Queue[BaseException | None]()
    pool.submit(Record.make("t", 0, 0), reported.put)
    assert type(reported.get(timeout=30)).__name__ == expected
    pool.submit(Record.make("t", 0, 1), reported.put)
    reported.get(timeout=30)
    pool.close()


def test_an_error_that_cannot_be_pickled_fails_its_own_record_only() -> None:
    pool, reported = ProcessPool(refuse_at_0, 1), Queue[BaseException | None]()
    for offset in (0, 1):
        pool.submit(Record.make("t", 0, offset), reported.put)
    assert repr(reported.get(timeout=30)) == "WorkerError('Refused: 0 is refused')"
    assert reported.get(timeout=30) is None, "what a handler returns is not sent at all"
    pool.close()
