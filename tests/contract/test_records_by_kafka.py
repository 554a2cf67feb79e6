"""We read what a real Kafka 3.9 writes into ZooKeeper, and would write the same bytes."""

import pytest
from kazoo.client import KazooClient
from msgspec import Struct

from peers.kafka import ON_ZOOKEEPER, KafkaCluster
from peers.tools import tool
from peers.zookeeper import ZooKeeper
from penstock.metadata import paths
from penstock.metadata.records import (
    ClusterId,
    ConfigChange,
    ConfigOverrides,
    ElectedController,
    Feature,
    PartitionState,
    TopicAssignment,
    decode,
    encode,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Node
from penstock.types import BrokerId, TopicPartition

pytestmark = pytest.mark.peer

KINDS: dict[str, type[Struct] | type[int]] = {
    paths.CLUSTER_ID: ClusterId,
    paths.CONTROLLER: ElectedController,
    paths.CONTROLLER_EPOCH: int,
    paths.FEATURE: Feature,
    paths.broker(BrokerId(0)): BrokerRegistration,
    paths.topic("t1"): TopicAssignment,
    paths.partition_state(TopicPartition("t1", 1)): PartitionState,
    paths.topic_config("t1"): ConfigOverrides,
    paths.broker_config(None): ConfigOverrides,
    f"{paths.CONFIG_CHANGE_PREFIX}0000000000": ConfigChange,
}


def change_something(bootstrap: str) -> None:
    where = ("--bootstrap-server", bootstrap)
    topic = ("--create", "--topic", "t1", "--partitions", "2", "--config", "retention.ms=5000")
    tool("kafka-topics", *where, *topic, version=ON_ZOOKEEPER)
    setting = ("--alter", "--add-config", "log.cleaner.threads=2")
    brokers = ("--entity-type", "brokers", "--entity-default")
    tool("kafka-configs", *where, *setting, *brokers, version=ON_ZOOKEEPER)


def test_kafkas_nodes_are_read_and_written_byte_for_byte() -> None:
    settings = {"broker.rack": "r1"}
    with (
        ZooKeeper() as zookeeper,
        KafkaCluster(zookeeper=zookeeper.connect, settings=settings) as kafka,
    ):
        change_something(kafka.bootstrap)
        client = KazooClient(zookeeper.connect)
        client.start()
        try:
            found = {path: client.get(path)[0] for path in KINDS}
            missing = [path for path in paths.PERSISTENT if not client.exists(path)]
        finally:
            client.stop()
            client.close()
    assert missing == []
    for path, kind in KINDS.items():
        record: Struct | int = decode(kind, Node(path, found[path], 0, 0, 0, 0))
        assert encode(record) == found[path], path
