"""Kafka's tools on three brokers print what the transcript says, also against Apache Kafka."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.tools import tool
from peers.zookeeper import ZooKeeper
from support.brokers.cluster_tools import transcript

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

EXPECTED = Path(__file__).with_name("cluster_tools.txt")
SETTINGS = {
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
}
WAIT_S = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[PenstockCluster]:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, 3, settings=SETTINGS) as cluster,
    ):
        yield cluster


def expected() -> list[str]:
    return EXPECTED.read_text(encoding="utf-8").splitlines()


@pytest.mark.row("A014")
def test_tools_find_the_right_brokers(cluster: PenstockCluster, tmp_path: Path) -> None:
    assert transcript(cluster.bootstrap, tmp_path) == expected()


@pytest.mark.soak
def test_the_tools_print_the_same_about_apache_kafka(tmp_path: Path) -> None:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        KafkaCluster(3, zookeeper=zookeeper.connect) as kafka,
    ):
        assert transcript(kafka.bootstrap, tmp_path) == expected()


def test_a_throttled_move_is_slow(cluster: PenstockCluster, tmp_path: Path) -> None:
    """Four megabytes at one per second; without the throttle the move takes a tenth of a second."""
    where = ("--bootstrap-server", cluster.bootstrap)
    tool("kafka-topics", *where, "--create", "--topic", "bulk", "--replica-assignment", "0")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "batch.size": 100_000})
    for _ in range(40):
        producer.produce("bulk", os.urandom(100_000))
    assert producer.flush(WAIT_S) == 0
    plan = tmp_path / "plan.json"
    move = {"topic": "bulk", "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    given = ("--reassignment-json-file", str(plan))
    tool("kafka-reassign-partitions", *where, "--execute", *given, "--throttle", "1000000")
    began_s = time.monotonic()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def moved() -> bool:
        return admin.list_topics("bulk", WAIT_S).topics["bulk"].partitions[0].replicas == [1]

    wait_until(moved, WAIT_S, "the move")
    assert time.monotonic() - began_s > 2
    tool("kafka-reassign-partitions", *where, "--verify", *given)
    tool("kafka-topics", *where, "--delete", "--topic", "bulk")
    wait_until(lambda: "bulk" not in admin.list_topics(timeout=WAIT_S).topics, WAIT_S, "it to go")
