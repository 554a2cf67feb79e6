"""A cluster of three that loses a leader while our client writes and reads."""

import asyncio

import pytest

from peers.kafka import KafkaCluster
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import RETRIABLE
from penstock.client.listing import LATEST
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.types import Offset, TopicPartition

pytestmark = pytest.mark.peer
TOPIC = "moving"
PARTITIONS = [TopicPartition(TOPIC, index) for index in range(3)]
ROUNDS, SIZE = 30, 20


async def scenario(kafka: KafkaCluster, client: Client) -> list[bytes | None]:
    configs = {"min.insync.replicas": "2"}
    new = NewTopic(name=TOPIC, partitions=3, replication_factor=3, configs=configs)
    await create_topic(client, new)
    (topic,) = await client.retrying(lambda: describe_topics(client, [TOPIC]), retry_on=RETRIABLE)
    victim = topic.partitions[0].leader
    producer = IdempotentProducer(client)
    read: list[bytes | None] = []
    async with SimpleConsumer(
        client, dict.fromkeys(PARTITIONS, Offset(0)), max_wait_ms=50
    ) as reader:
        async with asyncio.TaskGroup() as group:
            for number in range(ROUNDS):
                if number == ROUNDS // 3:
                    group.create_task(asyncio.to_thread(kafka.kill, victim))
                await producer.send(
                    ProducerRecord(TOPIC, b"%d-%d" % (number, n)) for n in range(SIZE)
                )
                read += [each.record.value for each in await reader.poll()]
        while len(read) < ROUNDS * SIZE:
            read += [each.record.value for each in await reader.poll()]
    (topic,) = await describe_topics(client, [TOPIC])
    assert victim not in {each.leader for each in topic.partitions.values()}
    ends = await list_offsets(client, dict.fromkeys(PARTITIONS, LATEST))
    assert sum(each.offset for each in ends.values()) == ROUNDS * SIZE
    return read


def test_nothing_is_lost_or_repeated_when_a_leader_dies() -> None:
    async def main(kafka: KafkaCluster) -> list[bytes | None]:
        async with Client(parse_addresses(kafka.bootstrap), request_timeout_ms=5_000) as client:
            return await scenario(kafka, client)

    with KafkaCluster(3) as kafka:
        read = asyncio.run(main(kafka))
    assert sorted(map(str, read)) == sorted(
        str(b"%d-%d" % (number, n)) for number in range(ROUNDS) for n in range(SIZE)
    )
