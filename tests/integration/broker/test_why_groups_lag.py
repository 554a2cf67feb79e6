"""Eight groups of real clients lag, each for another reason: each cause is diagnosed correctly."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from penstock.advice.group_lag import Cause, Explanation, why
from penstock.advice.group_progress import group_progress
from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.topics import make_topic
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.brokers.wire_link import WireLink

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "message.max.bytes": "20000000",
}
BACKLOG = 400
WATCHED_S, PATIENCE_MS = 2.0, 3000
ONE_BY_ONE = {"queued.min.messages": 1, "fetch.message.max.bytes": 400, "fetch.queue.backoff.ms": 1}
"""Settings of a consumer that takes turns among its partitions, without reading far ahead."""

Process = Callable[[Consumer, Message], object]


class Stage:
    """A broker, its writers and its members; all end with the stage."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self.bootstrap, self._stack = bootstrap, stack
        self.stop = Event()
        self._servers = {"bootstrap.servers": bootstrap, "log_level": 0}

    def topic(self, name: str, *counts: int, size: int = 100) -> None:
        """Creates a topic with this many records per partition, each in a batch of its own."""
        make_topic(self.bootstrap, name, len(counts), 1, None)
        producer = Producer(
            {**self._servers, "batch.num.messages": 1, "message.max.bytes": 20_000_000}
        )
        for index, count in enumerate(counts):
            for _ in range(count):
                producer.produce(name, b"x" * size, partition=index)
        assert producer.flush(30) == 0

    def begin(self, group: str, topic: str, partitions: int) -> None:
        """Commits offset 0 everywhere: the group has read nothing yet."""
        consumer = Consumer({**self._servers, "group.id": group})
        at = [TopicPartition(topic, index, 0) for index in range(partitions)]
        consumer.commit(offsets=at, asynchronous=False)
        consumer.close()

    def member(self, group: str, process: Process, pause_s: float = 0.0, **settings: Any) -> Event:
        """Starts a member that processes one record after another; the event is set once it has
        partitions.
        """
        assigned = Event()
        consumer = Consumer(
            {
                **self._servers,
                "group.id": group,
                "client.id": f"client-of-{group}",
                "enable.auto.commit": False,
                "partition.assignment.strategy": "roundrobin",
                **settings,
            }
        )

        def run() -> None:
            consumer.subscribe([group], on_assign=lambda *_: assigned.set())
            while not self.stop.is_set():
                record = consumer.poll(0.05)
                if record is not None and not record.error():
                    process(consumer, record)
                    self.stop.wait(pause_s)
            consumer.close()

        self.run(run)
        return assigned

    def run(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work)
        thread.start()
        self._stack.callback(thread.join)

    def write(self, topic: str, weights: dict[int, int], pause_s: float = 0.02) -> None:
        """Writes new records all the time; `weights` are by partition."""
        producer = Producer(self._servers)

        def run() -> None:
            while not self.stop.wait(pause_s):
                for index, count in weights.items():
                    for _ in range(count):
                        producer.produce(topic, b"x" * 100, partition=index)
                producer.poll(0)
            producer.flush(10)

        self.run(run)


def commit(consumer: Consumer, record: Message) -> None:
    try:
        consumer.commit(message=record, asynchronous=False)
    except KafkaException:
        return


def ignore(*_: object) -> None:
    """Processes a record and commits nothing."""


@contextmanager
def staged(bootstrap: str) -> Iterator[Stage]:
    with ExitStack() as stack:
        stage = Stage(bootstrap, stack)
        stack.callback(stage.stop.set)
        yield stage


def too_few_members(stage: Stage, name: str) -> None:
    stage.topic(name, *[BACKLOG] * 3)
    stage.begin(name, name, 3)
    stage.write(name, {0: 1, 1: 1, 2: 1})
    assert stage.member(name, commit, 0.01, **ONE_BY_ONE).wait(10)


def hot_partition(stage: Stage, name: str) -> None:
    stage.topic(name, BACKLOG, 1)
    stage.begin(name, name, 2)
    stage.write(name, {0: 10, 1: 1}, 0.1)
    ready = [stage.member(name, commit, 0.02, **ONE_BY_ONE) for _ in range(2)]
    assert all(each.wait(10) for each in ready)


def rebalancing(stage: Stage, name: str) -> None:
    stage.topic(name, BACKLOG)
    stage.begin(name, name, 1)
    for _ in range(3):
        consumer = Consumer({"bootstrap.servers": stage.bootstrap, "group.id": name})
        assigned = Event()
        consumer.subscribe([name], on_assign=lambda *_, done=assigned: done.set())
        while not assigned.is_set():
            consumer.poll(0.05)
        consumer.unsubscribe()
        consumer.close()
    assert stage.member(name, ignore).wait(10)


def stuck_commit(stage: Stage, name: str) -> None:
    stage.topic(name, BACKLOG)
    stage.begin(name, name, 1)
    assert stage.member(name, ignore).wait(10)


def slow_member(stage: Stage, name: str) -> None:
    stage.topic(name, 1, 1)
    stage.begin(name, name, 2)
    quick = stage.member(name, lambda consumer, record: consumer.commit(message=record))
    slow = stage.member(name, commit, 0.05, **{"client.id": "slow", **ONE_BY_ONE})
    assert quick.wait(10)
    assert slow.wait(10)
    stage.write(name, {0: 1, 1: 1})


def oversize_record(stage: Stage, name: str) -> None:
    stage.topic(name, 2, size=4_000_000)
    stage.begin(name, name, 1)
    small = {"receive.message.max.bytes": 1_100_000, "fetch.max.bytes": 1_000_000}
    small["fetch.message.max.bytes"] = small["max.partition.fetch.bytes"] = 1_000_000
    assert stage.member(name, commit, **small).wait(10)


def paused(stage: Stage, name: str) -> None:
    stage.topic(name, BACKLOG, 1)
    stage.begin(name, name, 2)
    stage.write(name, {1: 1})

    def process(consumer: Consumer, record: Message) -> None:
        consumer.pause([TopicPartition(name, 0)])
        if record.partition() == 1:
            commit(consumer, record)

    assert stage.member(name, process, **ONE_BY_ONE).wait(10)


def fenced(stage: Stage, name: str) -> None:
    """A member that was removed from the group keeps committing."""
    stage.topic(name, BACKLOG)
    stage.begin(name, name, 1)
    assert stage.member(name, ignore, pause_s=60).wait(10)
    with WireLink(stage.bootstrap) as link:
        link.client_id = "removed"
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=300)
        topic = OffsetCommitRequestTopic(name=name, partitions=[partition])
        request = OffsetCommitRequest(
            group_id=name, generation_id_or_member_epoch=1, member_id="gone", topics=[topic]
        )
        for _ in range(3):
            link.ask(request, 8)


STAGES = {
    Cause.TOO_FEW_MEMBERS: too_few_members,
    Cause.HOT_PARTITION: hot_partition,
    Cause.REBALANCING: rebalancing,
    Cause.STUCK_COMMIT: stuck_commit,
    Cause.SLOW_MEMBER: slow_member,
    Cause.OVERSIZE_RECORD: oversize_record,
    Cause.PAUSED: paused,
    Cause.FENCED: fenced,
}


async def explained(bootstrap: str) -> dict[str, Explanation]:
    async with (
        Client(parse_addresses(bootstrap), client_id="why") as client,
        asyncio.TaskGroup() as tasks,
    ):
        watched = {
            str(cause): tasks.create_task(
                group_progress(client, str(cause), WATCHED_S, patience_ms=PATIENCE_MS)
            )
            for cause in STAGES
        }
    return {cause: why(task.result()) for cause, task in watched.items()}


@pytest.mark.row("A184")
def test_each_of_eight_causes_is_diagnosed() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker, staged(broker.bootstrap) as stage:
        for cause, make in STAGES.items():
            make(stage, str(cause))
        stage.stop.wait(PATIENCE_MS / 1000)
        found = asyncio.run(explained(broker.bootstrap))
        stage.stop.set()
    assert {cause: each.cause for cause, each in found.items()} == {
        each: each for each in STAGES
    }, found
    rebalanced = re.search(r"(\d+) times", found[Cause.REBALANCING].sentence)
    assert rebalanced is not None, found[Cause.REBALANCING].sentence
    assert int(rebalanced[1]) >= 3, "as many as make a loop"
    assert "client slow is slow" in found[Cause.SLOW_MEMBER].sentence
    assert "removed" in found[Cause.FENCED].sentence
