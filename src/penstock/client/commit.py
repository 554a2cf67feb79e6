"""OffsetCommit request and response, for clients that are not members of the group."""

from collections.abc import Mapping

from penstock.client.errors import check
from penstock.client.listing import by_topic
from penstock.types import Offset, TopicPartition, Uuid
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)


def commit_request(
    group: str, offsets: Mapping[TopicPartition, Offset], topic_ids: Mapping[str, Uuid]
) -> OffsetCommitRequest:
    """A commit without a member id, which the coordinator accepts if the group is empty."""
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            topic_id=topic_ids[name],
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=each.partition, committed_offset=offsets[each]
                )
                for each in partitions
            ],
        )
        for name, partitions in by_topic(offsets).items()
    ]
    return OffsetCommitRequest(group_id=group, topics=topics)


def check_committed(group: str, response: OffsetCommitResponse) -> None:
    for topic in response.topics:
        for each in topic.partitions:
            check(each.error_code, f"offsets of group {group}")
