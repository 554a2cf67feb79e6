"""Looks up offsets of partitions, and deletes records up to an offset."""

from collections.abc import Mapping

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.listing import (
    IsolationLevel,
    ListedOffset,
    by_topic,
    list_offsets_request,
    listed_offsets,
)
from penstock.client.route import ToBroker
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import ListOffsetsResponse


async def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset]:
    """Each partition's first offset at or after a timestamp in ms, or at `LATEST` and the like."""

    async def attempt() -> dict[TopicPartition, ListedOffset]:
        found: dict[TopicPartition, ListedOffset] = {}
        for leader, partitions in (await client.by_leader(wanted)).items():
            requested = {each: wanted[each] for each in partitions}
            found |= await _listed(client, leader, requested, isolation)
        return found

    return await client.retrying(attempt)


async def _listed(
    client: Client,
    leader: BrokerId,
    requested: Mapping[TopicPartition, int],
    isolation: IsolationLevel,
) -> dict[TopicPartition, ListedOffset]:
    request = list_offsets_request(requested, isolation, client.request_timeout_ms)
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, ListOffsetsResponse, timeout_ms=client.request_timeout_ms
    )
    return listed_offsets(response)


async def delete_records(
    client: Client, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """Delete the records before an offset (-1: all); returns the new log start offsets."""

    async def attempt() -> dict[TopicPartition, Offset]:
        starts: dict[TopicPartition, Offset] = {}
        for leader, partitions in (await client.by_leader(before)).items():
            requested = {each: before[each] for each in partitions}
            starts |= await _deleted(client, leader, requested)
        return starts

    return await client.retrying(attempt)


async def _deleted(
    client: Client, leader: BrokerId, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=each.partition, offset=before[each])
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(before).items()
        ],
        timeout_ms=client.request_timeout_ms,
    )
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, DeleteRecordsResponse, timeout_ms=client.request_timeout_ms
    )
    starts = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            check(each.error_code, f"records of {partition}")
            starts[partition] = Offset(each.low_watermark)
    return starts
