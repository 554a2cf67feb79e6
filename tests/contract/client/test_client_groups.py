"""Our members and librdkafka's in one group, and transactions of both, on a real Kafka."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import Producer as RdProducer

from peers.kafka import KafkaCluster
from penstock.client.admin import create_partitions
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.group_consumer import GroupConsumer
from penstock.client.group_settings import GroupProtocol, GroupSettings, OffsetReset
from penstock.client.groups import committed_offsets, describe_group
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.membership.assignor import ASSIGNORS
from penstock.client.offsets import list_offsets
from penstock.client.produce import ProducerRecord
from penstock.client.transaction import ProducerFenced
from penstock.client.transactional_producer import TransactionalProducer
from penstock.types import Offset, TopicPartition
from support.commands.client_runs import has_partitions, run

pytestmark = pytest.mark.peer


@asynccontextmanager
async def librdkafka(
    kafka: KafkaCluster, group: str, others: Mapping[str, object]
) -> AsyncIterator[Consumer]:
    fields = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(fields | dict(others))
    consumer.subscribe([group])
    try:
        yield consumer
    finally:
        await asyncio.to_thread(consumer.close)


async def shares(ours: GroupConsumer | None, theirs: Consumer | None, wanted: int) -> None:
    """Both poll until each has `wanted` partitions."""
    async with asyncio.timeout(40):
        while True:
            if theirs is not None:
                await asyncio.to_thread(theirs.poll, 0.05)
            if ours is not None:
                await ours.poll(50)
            sizes = {len(ours.assignment)} if ours is not None else set()
            sizes |= {len(theirs.assignment())} if theirs is not None else set()
            if sizes == {wanted}:
                return


def held(theirs: Consumer) -> set[TopicPartition]:
    return {TopicPartition(each.topic, each.partition) for each in theirs.assignment()}


MIXES: dict[str, tuple[GroupSettings, dict[str, object]]] = {
    name: (
        GroupSettings(
            assignors=(assignor,), heartbeat_interval_ms=200, offset_reset=OffsetReset.EARLIEST
        ),
        {"partition.assignment.strategy": name, "heartbeat.interval.ms": 200},
    )
    for name, assignor in ASSIGNORS.items()
} | {
    "consumer": (
        GroupSettings(protocol=GroupProtocol.CONSUMER, offset_reset=OffsetReset.EARLIEST),
        {"group.protocol": "consumer"},
    )
}


@pytest.mark.row("A033", "A048")
@pytest.mark.parametrize("leads", ["ours", "theirs"])
@pytest.mark.parametrize("mix", MIXES)
def test_our_members_and_librdkafkas_share_a_topic(
    kafka: KafkaCluster, topic: str, mix: str, leads: str
) -> None:
    settings, others = MIXES[mix]
    everything = {TopicPartition(topic, index) for index in range(4)}

    async def scenario(client: Client) -> None:
        await create_partitions(client, topic, 4)
        await has_partitions(client, topic, 4)
        async with GroupConsumer(client, topic, settings) as ours:
            ours.subscribe([topic])
            if leads == "ours":
                await shares(ours, None, 4)
            async with librdkafka(kafka, topic, others) as theirs:
                if leads == "theirs":
                    await shares(None, theirs, 4)
                await shares(ours, theirs, 2)
                assert ours.assignment | held(theirs) == everything
                assert not ours.assignment & held(theirs)
                described = await describe_group(client, topic)
                assert len(described.members) == 2
            await shares(ours, None, 4)
            await ours.commit({TopicPartition(topic, 0): Offset(0)})
        assert TopicPartition(topic, 0) in await committed_offsets(client, topic)

    run(kafka, scenario)


@pytest.mark.row("A110", "A113")
def test_our_transactions_commit_abort_and_are_fenced_like_librdkafkas(
    kafka: KafkaCluster, topic: str
) -> None:
    place = TopicPartition(topic, 0)

    def successor() -> None:
        """A librdkafka producer with the same transactional id."""
        producer = RdProducer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(topic, b"theirs", partition=0)
        producer.commit_transaction(20)

    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as producer:
            async with producer.transaction():
                await producer.send([ProducerRecord(topic, b"ours", partition=0)])
            await producer.begin()
            await producer.send([ProducerRecord(topic, b"fenced", partition=0)])
            await asyncio.to_thread(successor)
            with pytest.raises(ProducerFenced):
                await producer.commit()
        assert await committed(client) == [b"ours", b"theirs"]

    async def committed(client: Client) -> list[bytes | None]:
        level = IsolationLevel.READ_COMMITTED
        starts = await list_offsets(client, {place: EARLIEST})
        ends = await list_offsets(client, {place: LATEST}, isolation=level)
        async with SimpleConsumer(
            client,
            {place: starts[place].offset},
            ends={place: ends[place].offset},
            isolation=level,
        ) as reader:
            return [each.record.value async for each in reader]

    run(kafka, scenario)


def test_our_producer_fences_librdkafkas(kafka: KafkaCluster, topic: str) -> None:
    theirs = RdProducer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    theirs.init_transactions(20)
    theirs.begin_transaction()
    theirs.produce(topic, b"theirs", partition=0)
    theirs.flush(20)

    async def scenario(client: Client) -> None:
        async with TransactionalProducer(client, topic) as ours:
            await ours.init()

    run(kafka, scenario)
    with pytest.raises(KafkaException):
        theirs.commit_transaction(20)
