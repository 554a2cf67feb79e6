"""Offsets of partitions: the first, the last, the one at a time; and records deleted up to one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from penstock.client.cluster import Client
from penstock.client.refusal import check
from penstock.client.route import ToBroker
from penstock.types import BrokerId, LeaderEpoch, Offset, TopicPartition
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""What ListOffsets takes in place of a time."""
NOT_A_REPLICA: Final = -1


class Isolation(IntEnum):
    """How much of open and aborted transactions a reader sees."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset with the time and epoch of its record, -1 where there is none.

    The offset is -1 where no record is as new as the time asked for.
    """

    offset: Offset
    timestamp: int
    leader_epoch: LeaderEpoch


async def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset]:
    """For each partition the first offset at or after a time in ms, or `LATEST` and the like."""

    async def attempt() -> dict[TopicPartition, ListedOffset]:
        found: dict[TopicPartition, ListedOffset] = {}
        for leader, partitions in (await client.by_leader(wanted)).items():
            asked = {each: wanted[each] for each in partitions}
            found |= await _listed(client, leader, asked, isolation)
        return found

    return await client.retrying(attempt)


async def _listed(
    client: Client, leader: BrokerId, asked: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, ListedOffset]:
    request = list_offsets_request(asked, isolation, client.request_timeout_ms)
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, ListOffsetsResponse, timeout_ms=client.request_timeout_ms
    )
    return listed_offsets(response)


def list_offsets_request(
    asked: Mapping[TopicPartition, int], isolation: Isolation, timeout_ms: int
) -> ListOffsetsRequest:
    """The question about partitions that one broker leads."""
    return ListOffsetsRequest(
        replica_id=NOT_A_REPLICA,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each.partition, timestamp=asked[each])
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(asked).items()
        ],
        timeout_ms=timeout_ms,
    )


def listed_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset]:
    """Its answer; a refusal of one partition is raised."""
    found = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            check(each.error_code, f"offset of {partition}")
            found[partition] = ListedOffset(
                Offset(each.offset), each.timestamp, LeaderEpoch(each.leader_epoch)
            )
    return found


async def delete_records(
    client: Client, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """Delete what lies before an offset (-1: all); gives where each partition now starts."""

    async def attempt() -> dict[TopicPartition, Offset]:
        starts: dict[TopicPartition, Offset] = {}
        for leader, partitions in (await client.by_leader(before)).items():
            asked = {each: before[each] for each in partitions}
            starts |= await _deleted(client, leader, asked)
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


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped = defaultdict(list)
    for each in partitions:
        grouped[each.topic].append(each)
    return dict(grouped)
