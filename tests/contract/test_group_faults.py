"""Groups survive the death of their broker or of their members."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import free_ports

pytestmark = pytest.mark.timeout(90)
QUIET = {"log_level": 0, "socket.timeout.ms": 5000, "reconnect.backoff.max.ms": 500}
GROUPS = 200
DEADLINE_S = 30
FAST = (
    "--set", "group.initial.rebalance.delay.ms=0",
    "--set", "group.min.session.timeout.ms=1000",
)  # fmt: skip


def member(bootstrap: str, group: str, topic: str, **more: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            # A consumer that closes during a join can leave only once the join completes.
            "session.timeout.ms": 3000,
            **QUIET,
            **more,
        }
    )
    consumer.subscribe([topic])
    return consumer


def shares(consumers: Sequence[Consumer], *sizes: int) -> list[set[int]]:
    """Polls until the consumers hold `sizes` partitions, in any order, and every partition once."""
    count = sum(sizes)
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        for consumer in consumers:
            consumer.poll(0.02)
        held = [{each.partition for each in consumer.assignment()} for consumer in consumers]
        if sorted(map(len, held)) == sorted(sizes) and set.union(*held) == set(range(count)):
            return held
        assert time.monotonic() < deadline_s, held


def create(bootstrap: str, topic: str, partitions: int) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    (made,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
    made.result(20)
    return admin


@pytest.mark.row("A043")
def test_every_committed_offset_survives_a_killed_broker(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=tmp_path) as broker:
        admin = create(broker.bootstrap, "t", 3)
        wanted = {
            f"group-{number}": [TopicPartition("t", p, number * 3 + p) for p in range(3)]
            for number in range(GROUPS)
        }
        pending = [
            admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, offsets)])[name]
            for name, offsets in wanted.items()
        ]
        for each in pending:
            each.result(20)
        broker.kill(0)
        broker.start(0)
        for name, offsets in wanted.items():
            asked = [ConsumerGroupTopicPartitions(name)]
            found = admin.list_consumer_group_offsets(asked)[name].result(20)
            reported = {each.partition: each.offset for each in found.topic_partitions}
            assert reported == {each.partition: each.offset for each in offsets}


@pytest.mark.row("A056", "A153")
def test_members_continue_without_a_rebalance_after_the_broker_is_killed(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), *FAST, folder=tmp_path) as broker:
        create(broker.bootstrap, "t", 4)
        assigned: list[int] = []
        # A client rejoins by itself when no heartbeat was answered for its session timeout, so the
        # timeout must be longer than a broker's start on a busy machine.
        patient = {"session.timeout.ms": 20_000}
        members = [member(broker.bootstrap, "g", "t", **patient) for _ in range(2)]
        before = shares(members, 2, 2)
        for each in members:
            each.subscribe(["t"], on_assign=lambda *_: assigned.append(1))
        before = shares(members, 2, 2)
        assigned.clear()
        broker.kill(0)
        broker.start(0)
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for partition in range(4):
            producer.produce("t", b"after", partition=partition)
        assert producer.flush(20) == 0
        read: list[int] = []
        deadline_s = time.monotonic() + DEADLINE_S
        while len(read) < 4:
            assert time.monotonic() < deadline_s
            for each in members:
                message = each.poll(0.05)
                if message is not None and message.error() is None:
                    read.append(message.partition() or 0)
                    each.commit(message=message, asynchronous=False)
        assert sorted(read) == [0, 1, 2, 3]
        assert [{p.partition for p in each.assignment()} for each in members] == before
        assert assigned == []
        for each in members:
            each.close()


def test_ten_members_share_partitions_and_take_over_those_of_leaving_members(
    tmp_path: Path,
) -> None:
    with PenstockBroker(*FAST, folder=tmp_path) as broker:
        create(broker.bootstrap, "t", 10)
        members = [member(broker.bootstrap, "g", "t") for _ in range(10)]
        shares(members, *[1] * 10)
        members.append(member(broker.bootstrap, "g", "t"))
        shares(members, 0, *[1] * 10)
        while len(members) > 1:
            members.pop().close()
        assert shares(members, 10) == [set(range(10))]
        members[0].close()


def test_a_static_member_that_restarts_keeps_its_share(tmp_path: Path) -> None:
    with PenstockBroker(*FAST, folder=tmp_path) as broker:
        create(broker.bootstrap, "t", 4)
        statics = {"group.instance.id": "one"}
        first = member(broker.bootstrap, "g", "t", **statics)
        other = member(broker.bootstrap, "g", "t", **{"group.instance.id": "two"})
        before = shares([first, other], 2, 2)
        rebalanced: list[int] = []
        other.subscribe(["t"], on_assign=lambda *_: rebalanced.append(1))
        before = shares([first, other], 2, 2)
        rebalanced.clear()
        first.close()  # a static member does not leave the group
        first = member(broker.bootstrap, "g", "t", **statics)
        assert shares([first, other], 2, 2) == before
        assert rebalanced == []
        first.close()
        other.close()


@pytest.mark.row("A054")
def test_a_member_that_stops_polling_loses_its_partitions(tmp_path: Path) -> None:
    with PenstockBroker(*FAST, folder=tmp_path) as broker:
        create(broker.bootstrap, "t", 2)
        limits = {"max.poll.interval.ms": 1500, "session.timeout.ms": 1200}
        lazy = member(broker.bootstrap, "g", "t", **limits)
        busy = member(broker.bootstrap, "g", "t", **limits)
        shares([lazy, busy], 1, 1)
        assert shares([busy], 2) == [{0, 1}]
        lazy.close()
        busy.close()


@pytest.mark.row("A052")
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_member_joins_and_leaves_with_every_assignment_strategy(
    tmp_path: Path, strategy: str
) -> None:
    with PenstockBroker(*FAST, folder=tmp_path) as broker:
        create(broker.bootstrap, "t", 4)
        how = {"partition.assignment.strategy": strategy}
        first = member(broker.bootstrap, "g", "t", **how)
        assert shares([first], 4) == [{0, 1, 2, 3}]
        second = member(broker.bootstrap, "g", "t", **how)
        shares([first, second], 2, 2)
        second.close()
        assert shares([first], 4) == [{0, 1, 2, 3}]
        first.close()


def test_new_partitions_and_new_topics_reach_the_group(tmp_path: Path) -> None:
    with PenstockBroker(*FAST, folder=tmp_path) as broker:
        admin = create(broker.bootstrap, "logs-a", 1)
        refresh = {"topic.metadata.refresh.interval.ms": 300}
        consumer = member(broker.bootstrap, "g", "^logs-.*", **refresh)
        shares([consumer], 1)
        create(broker.bootstrap, "logs-b", 2)
        deadline_s = time.monotonic() + DEADLINE_S
        while len(consumer.assignment()) < 3:
            consumer.poll(0.05)
            assert time.monotonic() < deadline_s
        assert admin.list_topics(timeout=10) is not None
        consumer.close()
