"""Three Penstock brokers: records acknowledged with acks=all are on every disk, byte for byte."""

import asyncio
from pathlib import Path

import pytest

from peers.penstock_cluster import PenstockCluster
from peers.zookeeper import ZooKeeper
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import RETRIABLE
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.types import Offset, TopicPartition
from support.brokers.following_broker import log_files, until

pytestmark = pytest.mark.peer
TOPIC = "t"
PARTITIONS = [TopicPartition(TOPIC, index) for index in range(3)]
ROUNDS, SIZE = 30, 20


def copies(cluster: PenstockCluster, where: TopicPartition) -> list[dict[str, bytes]]:
    return [log_files(cluster.data_dir(broker) / str(where)) for broker in range(3)]


def same_everywhere(cluster: PenstockCluster) -> bool:
    found = [copies(cluster, where) for where in PARTITIONS]
    return all(first and first == second == third for first, second, third in found)


async def scenario(cluster: PenstockCluster) -> None:
    async with Client(parse_addresses(cluster.bootstrap)) as client:
        configs = {"min.insync.replicas": "2"}
        new = NewTopic(name=TOPIC, partitions=3, replication_factor=3, configs=configs)
        await client.retrying(lambda: create_topic(client, new), retry_on=RETRIABLE)
        (topic,) = await client.retrying(
            lambda: describe_topics(client, [TOPIC]), retry_on=RETRIABLE
        )
        victim = topic.partitions[0].leader
        producer = IdempotentProducer(client)
        acked: set[bytes] = set()
        for number in range(ROUNDS):
            if number == ROUNDS // 3:
                await asyncio.to_thread(cluster.kill, victim)
            values = [b"%d-%d" % (number, each) for each in range(SIZE)]
            await producer.send(ProducerRecord(TOPIC, value) for value in values)
            acked.update(values)
        await asyncio.to_thread(cluster.start, victim)
        await until(lambda: same_everywhere(cluster), 60)
        read: set[bytes | None] = set()
        async with SimpleConsumer(
            client, dict.fromkeys(PARTITIONS, Offset(0)), max_wait_ms=50
        ) as reader:
            async with asyncio.timeout(30):
                while not acked <= read:
                    read.update(each.record.value for each in await reader.poll())


def test_a_killed_leader_comes_back_with_the_same_bytes(tmp_path: Path) -> None:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(
            zookeeper.connect,
            settings={"zookeeper.session.timeout.ms": 2000, "replica.fetch.backoff.ms": 100},
            folder=tmp_path,
        ) as cluster,
    ):
        asyncio.run(scenario(cluster))
