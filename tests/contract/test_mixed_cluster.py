"""Two brokers of Apache Kafka 3.9 and one of ours in one cluster on ZooKeeper.

Each side is controller for a while, leads and follows, dies and comes back.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.zookeeper import ZooKeeper

pytestmark = pytest.mark.peer
OURS = 2
SETTINGS = {"zookeeper.session.timeout.ms": "4000", "offsets.topic.num.partitions": "5"}
"""Kafka's brokers use their own setting as the partition count of the offsets topic until they
restart, so all brokers must have the same one: the broker that is first asked for a group creates
the topic.
"""


class Mixed:
    """The cluster's clients, and the records that they wrote."""

    def __init__(self, kafka: KafkaCluster, ours: PenstockCluster) -> None:
        self.kafka, self.ours = kafka, ours
        self.bootstrap = f"{kafka.bootstrap},{ours.bootstrap}"
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        self.acked: list[bytes] = []

    def write(self, name: str) -> None:
        """Writes records to every partition, each acknowledged by all in-sync replicas."""
        errors: list[object] = []
        for number in range(60):
            value = f"{name}-{number}".encode()
            self.producer.produce(
                "t", value, partition=number % 3, on_delivery=lambda e, _: errors.append(e)
            )
            self.acked.append(value)
        assert self.producer.flush(30) == 0
        assert set(errors) == {None}

    def controller(self) -> int:
        return int(self.admin.list_topics(timeout=10).controller_id)

    def wait_in_sync(self, *brokers: int) -> None:
        def in_sync() -> bool:
            listed = self.admin.list_topics("t", timeout=10).topics["t"].partitions.values()
            return all(sorted(each.isrs) == sorted(brokers) for each in listed)

        wait_until(in_sync, 30, f"brokers {brokers} in sync")

    def read(self) -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe(["t"])
        found: list[bytes] = []

        def complete() -> bool:
            message = consumer.poll(1)
            if message is not None and not message.error():
                found.append(message.value() or b"")
            return len(found) >= len(self.acked)

        try:
            wait_until(complete, 40, "all that was acknowledged")
        except TimeoutError as late:
            missing = sorted(set(self.acked) - set(found))
            raise AssertionError(f"{late}: {len(found)} read, {missing[:5]} missing") from late
        finally:
            consumer.close()
        return found


@pytest.fixture
def mixed() -> Iterator[Mixed]:
    with ZooKeeper() as zookeeper:
        ours = PenstockCluster(zookeeper.connect, 1, settings=SETTINGS, first=OURS)
        kafka = KafkaCluster(2, zookeeper=zookeeper.connect, settings=SETTINGS)
        with ours, kafka:
            yield Mixed(kafka, ours)


@pytest.mark.row("A088")
def test_kafka_and_penstock_form_one_cluster(mixed: Mixed) -> None:
    assert mixed.controller() == OURS
    topic = NewTopic("t", 3, 3, config={"min.insync.replicas": "2"})
    for made in mixed.admin.create_topics([topic]).values():
        made.result()
    mixed.wait_in_sync(0, 1, OURS)
    mixed.write("all")

    mixed.kafka.kill(0)
    mixed.wait_in_sync(1, OURS)
    mixed.write("without a Kafka")
    mixed.kafka.start(0)
    mixed.wait_in_sync(0, 1, OURS)

    mixed.ours.kill(OURS)
    mixed.wait_in_sync(0, 1)
    assert mixed.controller() in {0, 1}
    mixed.write("without us")
    mixed.ours.start(OURS)
    mixed.wait_in_sync(0, 1, OURS)
    mixed.write("all again")

    assert sorted(mixed.read()) == sorted(mixed.acked)
    for gone in mixed.admin.delete_topics(["t"]).values():
        gone.result()
    log = mixed.ours.data_dir(OURS)
    wait_until(lambda: not list(log.glob("t-[0-9]")), 20, "our logs of the topic to go")
