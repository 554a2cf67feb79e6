"""A partition on another broker is not reported as unknown, so clients look for its leader."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.client.address import Address, parse_addresses
from penstock.client.connection import Connection, connect
from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

TOPIC = "t"
TIMEOUT_MS = 10_000
Ask = Callable[[Connection, int], Awaitable[int]]


async def list_offsets(connection: Connection, index: int) -> int:
    part = ListOffsetsPartition(partition_index=index, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[part])])
    answer = await connection.call(request, ListOffsetsResponse, timeout_ms=TIMEOUT_MS)
    return answer.topics[0].partitions[0].error_code


async def delete_records(connection: Connection, index: int) -> int:
    part = DeleteRecordsPartition(partition_index=index, offset=0)
    topics = [DeleteRecordsTopic(name=TOPIC, partitions=[part])]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    answer = await connection.call(request, DeleteRecordsResponse, timeout_ms=TIMEOUT_MS)
    return answer.topics[0].partitions[0].error_code


async def describe_producers(connection: Connection, index: int) -> int:
    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[index])])
    answer = await connection.call(request, DescribeProducersResponse, timeout_ms=TIMEOUT_MS)
    return answer.topics[0].partitions[0].error_code


async def offset_for_leader_epoch(connection: Connection, index: int) -> int:
    part = OffsetForLeaderPartition(partition=index, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=TOPIC, partitions=[part])]
    request = OffsetForLeaderEpochRequest(topics=topics)
    answer = await connection.call(request, OffsetForLeaderEpochResponse, timeout_ms=TIMEOUT_MS)
    return answer.topics[0].partitions[0].error_code


ASKED: tuple[Ask, ...] = (
    list_offsets,
    delete_records,
    describe_producers,
    offset_for_leader_epoch,
)


async def metadata(connection: Connection) -> MetadataResponse:
    """Metadata of the topic, once this broker knows it."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    while True:
        found = await connection.call(request, MetadataResponse, timeout_ms=TIMEOUT_MS)
        if all(each.error_code == 0 and each.partitions for each in found.topics):
            return found
        await asyncio.sleep(0.01)


async def check(bootstrap: str) -> None:
    first = await connect(parse_addresses(bootstrap)[0], client_id="test")
    found = await metadata(first)
    await first.close()
    leaders = {each.partition_index: each.leader_id for each in found.topics[0].partitions}
    assert len(set(leaders.values())) == 2
    for broker in found.brokers:
        connection = await connect(Address(broker.host, broker.port), client_id="test")
        await metadata(connection)
        for ask in ASKED:
            codes = {index: await ask(connection, index) for index in (*leaders, len(leaders))}
            wanted = {
                index: 0 if leader == broker.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER
                for index, leader in leaders.items()
            }
            wanted[len(leaders)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes == wanted, ask.__name__
        await connection.close()


def test_requests_for_another_workers_partition_get_not_leader() -> None:
    with EmbeddedBroker(workers=2) as broker:
        broker.create_topic(TOPIC, 4)
        asyncio.run(check(broker.bootstrap))
