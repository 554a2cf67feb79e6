"""Our follower replicates from a leader that is Apache Kafka, which counts it as in sync."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from peers.kafka import KafkaCluster
from peers.process import free_ports
from peers.zookeeper import ZooKeeper
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, describe_topics
from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE
from penstock.client.metadata import TopicMetadata
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.record.batch import read_header
from penstock.testing.logs import batch_of
from penstock.types import BrokerId, TopicPartition
from support.brokers.following_broker import FollowingBroker, log_files, until

pytestmark = pytest.mark.peer
WHERE = TopicPartition("copied", 0)


@contextmanager
def registered(zookeeper: str) -> Iterator[None]:
    """Registers broker 1, which Kafka's controller believes to be alive; it never answers."""
    (port,) = free_ports(1)
    node = {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"],
        "jmx_port": -1,
        "port": port,
        "host": "127.0.0.1",
        "version": 5,
        "timestamp": "1",
    }
    client = KazooClient(zookeeper)
    client.start()
    try:
        client.create("/brokers/ids/1", json.dumps(node).encode(), ephemeral=True)
        yield
    finally:
        client.stop()
        client.close()


async def made(client: Client) -> TopicMetadata:
    new = NewTopic(name=WHERE.topic, assignments=[[BrokerId(0), BrokerId(1)]])
    await client.retrying(lambda: create_topic(client, new))
    (topic,) = await client.retrying(
        lambda: describe_topics(client, [WHERE.topic]), retry_on=RETRIABLE
    )
    return topic


async def scenario(kafka: KafkaCluster, folder: Path) -> None:
    (address,) = parse_addresses(kafka.bootstrap)
    theirs = kafka.data_dir(0) / str(WHERE)
    async with Client([address]) as client:
        topic = await made(client)
        state = topic.partitions[0]
        assert sorted(state.isr) == [0, 1], "Kafka waits for our replica"
        producer = IdempotentProducer(client)
        follower = FollowingBroker(address, folder)
        copy = follower.partition(WHERE, topic.id)
        follower.follow(copy, state.leader_epoch)
        async with follower.copying():
            records = [ProducerRecord(WHERE.topic, b"%d" % n * 20) for n in range(500)]
            await producer.send(records)  # acks=all: only our follower can have acknowledged it
            assert log_files(copy.log.path) == log_files(theirs)
            await until(lambda: copy.log.high_watermark == 500)

        # Kafka's answer must make this replica truncate records that only it has.
        batch = batch_of(b"never replicated")
        copy.log.append_as_leader(batch, read_header(batch), state.leader_epoch, 0)
        follower.fetchers.stop(WHERE)
        follower.fetchers.follow(copy)
        async with follower.copying():
            await until(lambda: follower.cuts == [(WHERE, 500)])
            await producer.send([ProducerRecord(WHERE.topic, b"last")])
            assert log_files(copy.log.path) == log_files(theirs)
            assert copy.log.end_offset == 501


def test_kafka_commits_records_that_our_follower_has_copied(tmp_path: Path) -> None:
    settings = {"replica.lag.time.max.ms": 60_000}
    with (
        ZooKeeper() as zookeeper,
        KafkaCluster(zookeeper=zookeeper.connect, settings=settings) as kafka,
        registered(zookeeper.connect),
    ):
        asyncio.run(scenario(kafka, tmp_path))
