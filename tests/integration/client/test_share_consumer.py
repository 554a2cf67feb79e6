"""A member of a share group that uses our client."""

import asyncio
from collections.abc import Iterator

import pytest

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs
from penstock.client.produce import IdempotentProducer
from penstock.client.record_sender import ProducerRecord
from penstock.client.route import ToBroker
from penstock.client.share_consumer import ShareConsumer, SharedRecord
from penstock.client.share_groups import share_offsets
from penstock.client.transactional_producer import TransactionalProducer
from penstock.config.resource_type import ConfigResourceType
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition
from penstock.wire.enums import AcknowledgeType

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
TP = TopicPartition("t", 0)
WAIT_S = 20


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        running.create_topic("t", 1)
        yield running


async def prepared(client: Client, count: int) -> None:
    resource = Resource(ConfigResourceType.GROUP, "g")
    await alter_configs(client, resource, {"share.auto.offset.reset": "earliest"})
    producer = IdempotentProducer(client)
    await producer.send([ProducerRecord("t", b"%d" % number) for number in range(count)])


async def some(consumer: ShareConsumer) -> list[SharedRecord]:
    async with asyncio.timeout(WAIT_S):
        while not (found := await consumer.poll(200)):
            pass
    return found


def test_records_of_a_broken_session_are_delivered_again(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            await prepared(client, 3)
            async with ShareConsumer(client, "g", ["t"]) as consumer:
                first = await some(consumer)
                consumer.acknowledge(first, AcknowledgeType.ACCEPT)
                (leader,) = await client.by_leader([TP])
                (await client.connection(ToBroker(leader))).abort()  # as if the network had failed
                outcome = await consumer.commit()
                assert list(outcome) == [TP]
                assert outcome[TP] is not None
                again = await some(consumer)
                assert [each.record.offset for each in again] == [0, 1, 2]
                consumer.acknowledge(again, AcknowledgeType.ACCEPT)
                assert await consumer.commit() == {TP: None}
            assert (await share_offsets(client, "g"))[TP].start == 3

    asyncio.run(work())


def test_unacknowledged_records_are_released_on_close(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            await prepared(client, 3)
            async with ShareConsumer(client, "g", ["t"], max_records=3) as consumer:
                consumer.acknowledge((await some(consumer))[:1], AcknowledgeType.ACCEPT)
            async with ShareConsumer(client, "g", ["t"]) as consumer:
                left = await some(consumer)
            assert [each.record.offset for each in left] == [1, 2]

    asyncio.run(work())


def test_transaction_markers_do_not_fill_the_group(broker: EmbeddedBroker) -> None:
    """Each marker has an offset that is acquired, but no record that a member could accept."""

    async def work() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            few = {
                "share.auto.offset.reset": "earliest",
                "share.partition.max.record.locks": "100",
            }
            await alter_configs(client, Resource(ConfigResourceType.GROUP, "g"), few)
            producer = TransactionalProducer(client, "transactions")
            await producer.init()
            for number in range(80):
                await producer.begin()
                await producer.send([ProducerRecord("t", b"%d" % number)])
                await producer.commit()
            await producer.close()
            found: list[SharedRecord] = []
            async with ShareConsumer(client, "g", ["t"]) as consumer:
                while len(found) < 80:
                    records = await some(consumer)
                    consumer.acknowledge(records, AcknowledgeType.ACCEPT)
                    assert await consumer.commit() == {TP: None}
                    found += records
            assert [each.record.value for each in found] == [b"%d" % each for each in range(80)]
            assert (await share_offsets(client, "g"))[TP].lag == 0

    asyncio.run(work())


def test_acquired_records_are_returned_although_another_partition_fails(
    broker: EmbeddedBroker,
) -> None:
    """Otherwise no member could process them, and they would be given up in the end."""

    async def work() -> None:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            await create_topic(client, NewTopic(name="gone"))
            await prepared(client, 0)
            async with ShareConsumer(client, "g", ["t", "gone"]) as consumer:
                await prepared(client, 3)
                consumer.acknowledge(await some(consumer), AcknowledgeType.ACCEPT)
                assert await consumer.commit() == {TP: None}
                await delete_topic(client, "gone")
                await prepared(client, 3)
                found = await some(consumer)
            assert [(each.record.offset, each.delivery_count) for each in found] == [
                (3, 1),
                (4, 1),
                (5, 1),
            ]

    asyncio.run(work())
