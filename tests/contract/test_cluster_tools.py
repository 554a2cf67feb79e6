"""Kafka's tools on three brokers: they say what the transcript says, and so of Apache Kafka."""

from pathlib import Path

import pytest

from cluster_tools import transcript
from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.zookeeper import ZooKeeper

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

EXPECTED = Path(__file__).with_name("cluster_tools.txt")
SETTINGS = {
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
}


def expected() -> list[str]:
    return EXPECTED.read_text(encoding="utf-8").splitlines()


def test_tools_find_the_right_brokers(tmp_path: Path) -> None:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, 3, settings=SETTINGS) as cluster,
    ):
        assert transcript(cluster.bootstrap, tmp_path) == expected()


@pytest.mark.soak
def test_they_say_the_same_of_apache_kafka(tmp_path: Path) -> None:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        KafkaCluster(3, zookeeper=zookeeper.connect) as kafka,
    ):
        assert transcript(kafka.bootstrap, tmp_path) == expected()
