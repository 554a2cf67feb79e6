"""Records fetched but not delivered are delivered later, or dropped with their partition."""

import asyncio
import gc
import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock.sdk.async_consumer import AsyncConsumer
from penstock.sdk.commit_mode import AsyncCommit, AutoCommit, CommitMode, ManualCommit, SyncCommit
from penstock.sdk.consumer import Consumer
from penstock.sdk.errors import ConsumerFailed, DeserializationFailed
from penstock.sdk.interceptor import ConsumerInterceptor
from penstock.sdk.record import Record


class Client:
    """Returns these messages, and records the commits."""

    def __init__(self, *messages: Message) -> None:
        self.messages, self.committed = list(messages), dict[tuple[str, int], int]()
        self.partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
        self.before_poll: Callable[[], None] = lambda: None
        self.before_consume: Callable[[], None] = lambda: None
        self.loses_commits = False
        """Whether asynchronous commits are lost."""
        self.is_rebalancing = False
        """Whether commits are refused, until the next poll."""

    def poll(self, _timeout_s: float) -> Message | None:
        self.before_poll()
        self.is_rebalancing = False
        return self.messages.pop(0) if self.messages else None

    def consume(self, most: int, _timeout_s: float) -> list[Message]:
        self.before_consume()
        found, self.messages = self.messages[:most], self.messages[most:]
        return found

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        if asynchronous and self.loses_commits:
            return []
        if not asynchronous and self.is_rebalancing:
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        self.committed |= {(each.topic, each.partition): each.offset for each in offsets}
        return offsets

    def store_offsets(self, *, offsets: list[TopicPartition]) -> None:
        """Commits at once, as if librdkafka's timer fired."""
        self.committed |= {(each.topic, each.partition): each.offset for each in offsets}

    def assignment(self) -> list[TopicPartition]:
        return self.partitions

    def seek(self, at: TopicPartition) -> None:
        self.messages = [message(each) for each in range(at.offset, 9)]

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition, -1001) for each in partitions]

    def close(self) -> None: ...


def message(offset: int, partition: int = 0) -> Message:
    return Message(topic="t", partition=partition, offset=offset, value=b"%d" % offset)


def consumer_of(client: Client, mode: CommitMode, value: Any = None) -> Consumer[bytes, Any]:
    consumer: Consumer[bytes, Any] = Consumer(
        {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0},
        value=value,
        commit=mode,
    )
    consumer.client.close()
    made: Any = client
    consumer.client = made
    return consumer


def test_a_new_loop_continues_after_the_last_record_of_the_former_one() -> None:
    client = Client(*map(message, range(9)))
    with consumer_of(client, SyncCommit()) as consumer:
        read = [each.offset for each in islice(consumer, 2)]
        for each in consumer:
            read.append(each.offset)
            break
        read += [each.offset for each in consumer.batch(2)]
        assert consumer.position("t", 0) == 5
        read += [next(iter(consumer)).offset]
        consumer.seek("t", 0, 7)
        read += [each.offset for each in islice(consumer, 2)]
    assert read == [0, 1, 2, 3, 4, 5, 7, 8]
    assert client.committed == {("t", 0): 8}  # the last record was still being processed


def test_a_former_loop_continues_after_records_read_elsewhere() -> None:
    client = Client(*map(message, range(4)))
    with consumer_of(client, SyncCommit()) as consumer:
        former = iter(consumer)
        assert [next(former).offset, next(iter(consumer)).offset] == [0, 1]
        assert [each.offset for each in consumer.batch()] == [2, 3]
        client.messages = [message(4)]
        assert next(former).offset == 4


async def cancelled_batch(consumer: AsyncConsumer[bytes, Any], client: Client) -> None:
    """Cancel a batch while its thread is inside the call."""
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        client.before_poll = lambda: None
        began.set()
        assert go_on.wait(60)

    client.before_poll = wait
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(consumer.batch())
        assert await asyncio.to_thread(began.wait, 60)
        waiting.cancel()
    go_on.set()


def test_a_batch_lost_by_cancellation_is_delivered_again() -> None:
    client = Client(*map(message, range(3)))

    async def impatient() -> list[int]:
        async with AsyncConsumer(consumer_of(client, SyncCommit())) as consumer:
            await cancelled_batch(consumer, client)
            await consumer.commit()
            assert not client.committed
            return [each.offset for each in await consumer.batch()]

    assert asyncio.run(impatient()) == [0, 1, 2]
    assert client.committed == {("t", 0): 3}


class DropsFirst(ConsumerInterceptor):
    def on_consume(self, records: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
        return [each for each in records if each.offset]


def test_a_cancelled_batch_emptied_by_an_interceptor_causes_no_seek() -> None:
    client = Client(message(0))

    async def impatient() -> None:
        async with AsyncConsumer(consumer_of(client, SyncCommit())) as consumer:
            consumer.consumer._chain = (DropsFirst(),)
            await cancelled_batch(consumer, client)
            await consumer.run(lambda: client.messages.append(message(1)))
            assert [each.offset for each in await consumer.batch()] == [1]
            client.messages.append(message(2))
            await cancelled_batch(consumer, client)
            assert [each.offset for each in await consumer.batch()] == [2]

    asyncio.run(impatient())
    assert client.committed == {("t", 0): 3}


def test_revoked_partitions_are_neither_committed_nor_delivered() -> None:
    client = Client(message(0, 0), message(0, 1))
    consumer = consumer_of(client, ManualCommit())

    def revoke() -> None:
        client.partitions = [TopicPartition("t", 1)]
        consumer._revoked(None, [TopicPartition("t", 0)])
        client.before_consume = lambda: None

    assert len(consumer.batch()) == 2
    client.messages, client.before_consume = [message(1, 0), message(1, 1)], revoke
    assert [each.id for each in consumer.batch()] == [("t", 1, 1)]
    consumer.commit()
    assert client.committed == {("t", 1): 2}
    consumer.close()


def test_records_before_an_error_are_delivered_first() -> None:
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    client = Client(message(0), Message(topic="t", error=error), message(1))
    with consumer_of(client, SyncCommit()) as consumer:
        assert [each.offset for each in consumer.batch()] == [0]
        with pytest.raises(ConsumerFailed, match="TOPIC_AUTHORIZATION_FAILED"):
            consumer.batch()
        assert [each.offset for each in consumer.batch()] == [1]


class Digits:
    def deserialize(self, data: bytes, /) -> int:
        return int(data)


def test_a_program_that_a_poison_record_ended_reads_it_again() -> None:
    poison = Message(topic="t", partition=0, offset=1, value=b"x")
    client = Client(message(0), poison, message(2))
    with (
        pytest.raises(DeserializationFailed, match="t-0 at 1"),
        consumer_of(client, SyncCommit(), Digits()) as consumer,
    ):
        for _ in consumer:
            pass
    assert client.committed == {("t", 0): 1}
    client = Client(poison, message(2))
    with consumer_of(client, SyncCommit(), Digits()) as consumer:
        with pytest.raises(DeserializationFailed):
            consumer.batch()
        assert [each.value for each in consumer.batch()] == [2], "who goes on has dealt with it"
    assert client.committed == {("t", 0): 3}


def test_a_poison_record_in_a_cancelled_call_is_raised_by_the_next_call() -> None:
    poison = Message(topic="t", partition=0, offset=0, value=b"x")
    client, unseen = Client(poison, message(1)), list[dict[str, Any]]()

    async def impatient() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unseen.append(what))
        async with AsyncConsumer(consumer_of(client, SyncCommit(), Digits())) as consumer:
            await cancelled_batch(consumer, client)
            await consumer.commit()
            gc.collect()
            assert not client.committed
            assert await consumer.run(consumer.consumer.position, "t", 0) == 0
            with pytest.raises(DeserializationFailed, match="t-0 at 0"):
                await consumer.batch()
            assert await consumer.run(consumer.consumer.position, "t", 0) == 1
            assert not client.committed
            read = [each.offset for each in await consumer.batch()]
            assert client.committed == {("t", 0): 1}, "who goes on has dealt with it"
            return read

    assert asyncio.run(impatient()) == [1]
    assert client.committed == {("t", 0): 2}
    assert unseen == [], "no future whose error was never retrieved"


def test_a_poison_record_in_a_cancelled_call_is_not_committed_at_the_end() -> None:
    client = Client(Message(topic="t", partition=0, offset=0, value=b"x"), message(1))

    async def impatient() -> None:
        async with AsyncConsumer(consumer_of(client, SyncCommit(), Digits())) as consumer:
            await cancelled_batch(consumer, client)

    asyncio.run(impatient())
    assert client.committed == {}


def test_a_poison_record_in_a_cancelled_call_is_dropped_by_a_seek() -> None:
    client = Client(Message(topic="t", partition=0, offset=0, value=b"x"))

    async def impatient() -> list[int]:
        async with AsyncConsumer(consumer_of(client, SyncCommit(), Digits())) as consumer:
            await cancelled_batch(consumer, client)
            await consumer.seek("t", 0, 7)
            return [each.offset for each in await consumer.batch()]

    assert asyncio.run(impatient()) == [7, 8]


def test_an_error_in_a_cancelled_call_is_raised_by_the_next_call() -> None:
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    client = Client(Message(topic="t", error=error), message(0))

    async def impatient() -> list[int]:
        async with AsyncConsumer(consumer_of(client, SyncCommit())) as consumer:
            await cancelled_batch(consumer, client)
            with pytest.raises(ConsumerFailed, match="TOPIC_AUTHORIZATION_FAILED"):
                await consumer.batch()
            return [each.offset for each in await consumer.batch()]

    assert asyncio.run(impatient()) == [0]


def test_the_last_commit_includes_unacknowledged_offsets() -> None:
    client = Client(message(0), message(1), message(0, 1))
    client.loses_commits = True
    with consumer_of(client, AsyncCommit(every_ms=0, sync_every=0)) as consumer:
        consumer.batch()
        assert consumer.batch() == []
        assert client.committed == {}
        consumer._committed(None, [TopicPartition("t", 1, 1)])
        consumer._committed(None, [TopicPartition("t", 0, 1)])
    assert client.committed == {("t", 0): 2}, "that of the other partition was acknowledged"


@pytest.mark.parametrize("mode", [SyncCommit(), AsyncCommit(every_ms=0, sync_every=1)])
def test_the_offsets_of_a_failed_commit_are_committed_later(mode: CommitMode) -> None:
    client = Client(message(0), message(1), message(0, 1))
    with consumer_of(client, mode) as consumer:
        assert len(consumer.batch()) == 3
        client.is_rebalancing = True
        with pytest.raises(ConsumerFailed, match="REBALANCE_IN_PROGRESS"):
            consumer.batch()
        client.messages = [message(2)]
        assert [each.offset for each in consumer.batch()] == [2], "polled before another commit"
        assert client.committed == {}
        assert consumer.batch() == []
        assert client.committed == {("t", 0): 3, ("t", 1): 1}, "newer offsets win"


def test_closing_commits_the_offsets_of_a_failed_commit() -> None:
    client = Client(message(0), message(1), message(0, 1))
    with consumer_of(client, SyncCommit()) as consumer:
        consumer.batch()
        client.is_rebalancing = True
        with pytest.raises(ConsumerFailed):
            consumer.batch()
        consumer._lost(None, [TopicPartition("t", 1)])
        client.is_rebalancing = False
    assert client.committed == {("t", 0): 2}, "the other partition is another consumer's"


def test_a_failed_manual_commit_is_left_to_the_timer_and_causes_no_seek() -> None:
    client = Client(message(0), message(1))
    with consumer_of(client, AutoCommit(interval_ms=0)) as consumer:
        consumer.batch()
        client.is_rebalancing = True
        with pytest.raises(ConsumerFailed):
            consumer.commit()
        client.messages = [message(2)]
        assert [each.offset for each in consumer.batch()] == [2]
        consumer.batch()
        assert client.committed == {("t", 0): 3}
        consumer.commit()
        assert client.committed == {("t", 0): 3}


def test_manually_committed_offsets_are_not_overwritten_by_older_commits() -> None:
    client = Client(message(0), message(1))
    client.loses_commits = True
    with consumer_of(client, AsyncCommit(every_ms=0, sync_every=0)) as consumer:
        consumer.batch()
        consumer.batch()
        consumer.commit_offsets({("t", 0): 1})
    assert client.committed == {("t", 0): 1}


def test_a_lost_partition_is_not_committed_later() -> None:
    client = Client(message(0), message(0, 1))
    client.loses_commits = True
    with consumer_of(client, AsyncCommit(every_ms=0, sync_every=0)) as consumer:
        consumer.batch()
        consumer.batch()
        consumer._lost(None, [TopicPartition("t", 0)])
    assert client.committed == {("t", 1): 1}
