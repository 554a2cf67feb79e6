"""When a consumer commits, and what its successor reads again: librdkafka on one partition."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from peers.process import wait_until
from penstock.testing.broker import EmbeddedBroker
from support.brokers.lossy_link import OFFSET_COMMIT, LossyLink

WAIT_S = 30
RECORDS = 10
SETTINGS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


def fill(broker: EmbeddedBroker, topic: str) -> None:
    """Fills the topic; the value of each record is its offset."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, f"{number}", partition=0)
    assert producer.flush(WAIT_S) == 0


@pytest.fixture
def filled(broker: EmbeddedBroker, topic: str) -> str:
    broker.create_topic(topic, 1)
    fill(broker, topic)
    return topic


@contextmanager
def member(bootstrap: str, group: str, **more: object) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }
    )
    with closing(consumer):
        yield consumer


def read(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline_s, found
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(int(message.value() or b""))
    return found


def committed(consumer: Consumer, topic: str) -> int:
    (found,) = consumer.committed([TopicPartition(topic, 0)], WAIT_S)
    return int(found.offset)


@contextmanager
def reader(bootstrap: str, topic: str, **more: object) -> Iterator[Consumer]:
    """A consumer that starts at its group's committed offset without joining the group. If it does
    not close, it looks to its successor like one that crashed.
    """
    with member(bootstrap, topic, **more) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer


@pytest.mark.row("A040")
def test_automatic_commits_lose_nothing_and_repeat_records_since_the_last_commit(
    broker: EmbeddedBroker, filled: str
) -> None:
    often = {"enable.auto.commit": True, "auto.commit.interval.ms": 50}
    rarely = {"enable.auto.commit": True, "auto.commit.interval.ms": 600_000}
    with reader(broker.bootstrap, filled, **often) as first:
        assert read(first, 6) == [0, 1, 2, 3, 4, 5]
        wait_until(lambda: committed(first, filled) == 6, WAIT_S, "a commit by itself")
    with (
        reader(broker.bootstrap, filled, **rarely) as crashed,
        reader(broker.bootstrap, filled) as successor,
    ):
        assert read(crashed, 3) == [6, 7, 8]
        assert read(successor, 4) == [6, 7, 8, 9]


@pytest.mark.row("A041", "A183")
def test_asynchronous_commits_are_completed_by_a_synchronous_one(
    broker: EmbeddedBroker, filled: str
) -> None:
    answers: list[KafkaError | None] = []
    settings = {"on_commit": lambda error, _partitions: answers.append(error)}
    with reader(broker.bootstrap, filled, **settings) as consumer:
        for number in range(RECORDS - 1):
            assert read(consumer, 1) == [number]
            consumer.commit(asynchronous=True)
            if number == 4:
                consumer.commit(asynchronous=False)
                assert committed(consumer, filled) == 5
        consumer.commit(asynchronous=False)  # a program does this in its `finally`
        assert committed(consumer, filled) == RECORDS - 1
        deadline_s = time.monotonic() + WAIT_S
        while len(answers) < RECORDS - 1 and time.monotonic() < deadline_s:
            consumer.poll(0.05)
    assert set(answers) == {None}
    with reader(broker.bootstrap, filled) as successor:
        assert read(successor, 1) == [RECORDS - 1]


@pytest.mark.row("A042")
def test_an_asynchronous_commit_is_not_retried(topic: str) -> None:
    reported: list[object] = []
    with LossyLink(OFFSET_COMMIT) as link:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{link.broker_port}",
            "advertised.listeners": f"PLAINTEXT://{link.address}",
        }
        with EmbeddedBroker(settings=settings) as broker:
            broker.create_topic(topic, 1)
            place = KafkaTopicPartition(topic, 0)
            consumer = KafkaConsumer(
                bootstrap_servers=link.address, group_id=topic, enable_auto_commit=False
            )
            with closing(consumer):
                consumer.assign([place])
                consumer.commit({place: OffsetAndMetadata(1, "", -1)})
                link.lose("request")
                consumer.commit_async(
                    {place: OffsetAndMetadata(2, "", -1)}, lambda _, error: reported.append(error)
                )

                def is_told() -> bool:
                    consumer.poll(timeout_ms=20)
                    return bool(reported)

                wait_until(is_told, WAIT_S, "the outcome")
                assert isinstance(reported[0], KafkaPythonError)
                assert consumer.committed(place) == 1
                consumer.commit({place: OffsetAndMetadata(3, "", -1)})
                assert consumer.committed(place) == 3


@contextmanager
def slow_and_idle(
    broker: EmbeddedBroker, topic: str, max_poll_interval_ms: int
) -> Iterator[tuple[Consumer, Consumer, list[int]]]:
    """A member that has read some records and no longer polls, a member without a partition, and
    the records that were read.
    """
    broker.create_topic(topic, 1)
    limits = {
        "max.poll.interval.ms": max_poll_interval_ms,
        "session.timeout.ms": 2500,
        "heartbeat.interval.ms": 300,
    }
    with (
        member(broker.bootstrap, topic, **limits) as one,
        member(broker.bootstrap, topic, **limits) as other,
    ):
        for each in (one, other):
            each.subscribe([topic])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

        def both_are_in() -> bool:
            for each in (one, other):
                assert each.poll(0.02) is None
            try:
                group = admin.describe_consumer_groups([topic])[topic].result(WAIT_S)
            except KafkaException:
                return False  # neither the group nor its coordinator may be there yet
            is_stable = group.state == ConsumerGroupState.STABLE and len(group.members) == 2
            return is_stable and len(one.assignment()) + len(other.assignment()) == 1

        wait_until(both_are_in, WAIT_S, "two members, one of them with the partition")
        fill(broker, topic)
        slow, idle = (one, other) if one.assignment() else (other, one)
        yield slow, idle, read(slow, 3)


@pytest.mark.row("A154")
def test_records_of_a_member_that_times_out_before_its_commit_are_read_again(
    broker: EmbeddedBroker, topic: str
) -> None:
    with slow_and_idle(broker, topic, max_poll_interval_ms=2500) as (slow, successor, found):
        assert read(successor, 3) == found
        with pytest.raises(KafkaException) as refused:
            slow.commit(asynchronous=False)
        assert refused.value.args[0].code() == KafkaError._ASSIGNMENT_LOST


@pytest.mark.row("A153", "A154")
def test_a_longer_poll_interval_gives_a_slow_member_time_to_commit(
    broker: EmbeddedBroker, topic: str
) -> None:
    with slow_and_idle(broker, topic, max_poll_interval_ms=60_000) as (slow, idle, found):
        assert idle.poll(3) is None, "longer than a session lasts: heartbeats go on"
        slow.commit(asynchronous=False)
        assert committed(slow, topic) == found[-1] + 1
