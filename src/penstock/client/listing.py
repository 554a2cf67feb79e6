"""ListOffsets request and response; sending them is up to the caller."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from penstock.client.errors import check
from penstock.types import LeaderEpoch, Offset, TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
"""ListOffsets takes these in place of a timestamp."""
NOT_A_REPLICA: Final = -1


class IsolationLevel(IntEnum):
    """Whether a consumer sees records of open and aborted transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset with timestamp and leader epoch of its record; -1 if unknown.

    The offset is -1 if no record is as new as the requested timestamp.
    """

    offset: Offset
    timestamp: int
    leader_epoch: LeaderEpoch


def list_offsets_request(
    requested: Mapping[TopicPartition, int], isolation: IsolationLevel, timeout_ms: int
) -> ListOffsetsRequest:
    """The request to one leader, for partitions that it leads."""
    return ListOffsetsRequest(
        replica_id=NOT_A_REPLICA,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each.partition, timestamp=requested[each])
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(requested).items()
        ],
        timeout_ms=timeout_ms,
    )


def listed_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset]:
    """The offsets in the response; raises the first error of a partition."""
    found = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            check(each.error_code, f"offset of {partition}")
            found[partition] = ListedOffset(
                Offset(each.offset), each.timestamp, LeaderEpoch(each.leader_epoch)
            )
    return found


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped = defaultdict(list)
    for each in partitions:
        grouped[each.topic].append(each)
    return dict(grouped)
