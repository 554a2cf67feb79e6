"""Looks up offsets of partitions, and deletes records up to an offset."""

from collections.abc import Collection, Mapping

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.leader_calls import call_broker, from_leaders
from penstock.client.listing import (
    LATEST,
    IsolationLevel,
    ListedOffset,
    by_topic,
    list_offsets_request,
    listed_offsets,
)
from penstock.client.metadata import NO_LEADER
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
    """Each partition's first offset at or after a timestamp in ms, or at one such as `LATEST`."""

    async def ask(
        client: Client, leader: BrokerId, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset]:
        return await offsets_of_leader(client, leader, timestamps, isolation)

    return await from_leaders(client, wanted, ask)


async def offsets_of_leader(
    client: Client,
    leader: BrokerId,
    wanted: Mapping[TopicPartition, int],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset]:
    """Like `list_offsets`, in one attempt and for partitions that `leader` leads."""
    request = list_offsets_request(wanted, isolation, client.request_timeout_ms)
    return listed_offsets(await call_broker(client, leader, request, ListOffsetsResponse))


async def known_ends(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Offset]:
    """The log ends of the partitions that exist and have a leader; the others are left out.

    So a group can be inspected while a broker is down.
    """
    if not partitions:
        return {}
    led = {
        TopicPartition(topic.name, each.index)
        for topic in await client.existing_topics({each.topic for each in partitions})
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    }
    wanted = dict.fromkeys((each for each in partitions if each in led), LATEST)
    return {tp: each.offset for tp, each in (await list_offsets(client, wanted)).items()}


async def delete_records(
    client: Client, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """Delete the records before an offset (-1: all); returns the new log start offsets."""
    return await from_leaders(client, before, _deleted)


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
    response = await call_broker(client, leader, request, DeleteRecordsResponse)
    starts = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            check(each.error_code, f"records of {partition}")
            starts[partition] = Offset(each.low_watermark)
    return starts
