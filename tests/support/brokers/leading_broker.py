"""Broker 0, complete and in the test's own loop, leading a topic that broker 1 follows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.broker.app import RunningBroker, running
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.connection import Connection, connect
from penstock.client.produce import IdempotentProducer
from penstock.config.sources import resolve
from penstock.record.batch import read_header
from penstock.replication.partition import Partition
from penstock.testing.logs import batch_of
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TOPIC = "t"


class Leading:
    """The broker and its partitions; the test decides their leadership."""

    def __init__(self, broker: RunningBroker, client: Client) -> None:
        self.services, self.state, self.client = broker.services, broker.state, client
        self.address = parse_addresses(broker.state.bootstrap)[0]
        self.producer = IdempotentProducer(client)

    def partition(self, index: int = 0) -> Partition:
        return self.services.replicas.partitions.get(TOPIC, index)

    def lead(self, index: int, leader_epoch: int) -> None:
        partition = self.partition(index)
        partition.lead(leader_epoch, (0, 1), (0, 1), partition.partition_epoch + 1)

    def append(self, *values: bytes, index: int = 0) -> None:
        """Appends with acks=1: nothing waits."""
        batch, partition = batch_of(*values), self.partition(index)
        partition.append(batch, read_header(batch), 1, 0)
        self.services.waiters.changed(partition.topic_partition)


@asynccontextmanager
async def leading(
    folder: Path, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Leading]:
    resolved = resolve(
        defaults={
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dir": str(folder / "leader"),
            "broker.id": "0",
            **(settings or {}),
        },
        strict=True,
    )
    async with (
        running(resolved, folder) as broker,
        Client(parse_addresses(broker.state.bootstrap)) as client,
    ):
        await create_topic(client, NewTopic(name=TOPIC, partitions=partitions))
        yield Leading(broker, client)


Test = Callable[[Leading, Connection], Awaitable[None]]


def run(
    folder: Path, test: Test, settings: Mapping[str, str] | None = None, partitions: int = 1
) -> None:
    """Run a test with the broker and a connection to it."""

    async def main() -> None:
        async with leading(folder, partitions, settings) as leader:
            connection = await connect(leader.address, client_id="test")
            try:
                await test(leader, connection)
            finally:
                await connection.close()

    asyncio.run(main())


def produce(
    leader: Leading,
    connection: Connection,
    *batches: bytes | bytearray,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> asyncio.Future[ProduceResponse]:
    """Send the batches, or a batch of one record, to partition 0."""
    parts = [
        PartitionProduceData(index=0, records=memoryview(each))
        for each in batches or [batch_of(b"x")]
    ]
    topic = TopicProduceData(name=TOPIC, topic_id=leader.partition().topic_id, partition_data=parts)
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
    return connection.send(request, ProduceResponse)


async def code_of(sent: asyncio.Future[ProduceResponse]) -> int:
    response = await sent
    return response.responses[0].partition_responses[0].error_code


async def appended(leader: Leading, end_offset: int = 1) -> None:
    async with asyncio.timeout(10):
        while leader.partition().log.end_offset < end_offset:
            await asyncio.sleep(0)
