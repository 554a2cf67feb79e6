"""OffsetFetch and OffsetCommit of a group's member; sending them is up to the caller."""

from collections.abc import Iterable, Mapping

from penstock.client.committed import group_offsets
from penstock.client.errors import check
from penstock.client.listing import by_topic
from penstock.client.membership.member import GroupMetadata
from penstock.types import Offset, TopicPartition, Uuid
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopics,
)


def member_offsets_request(
    member: GroupMetadata, partitions: Iterable[TopicPartition], ids: Mapping[str, Uuid]
) -> OffsetFetchRequest:
    """Stable offsets only: none that an open transaction may still change (KIP-447)."""
    indexes = {
        topic: [each.partition for each in found] for topic, found in by_topic(partitions).items()
    }
    return OffsetFetchRequest(
        group_id=member.group,
        topics=[
            OffsetFetchRequestTopic(name=name, partition_indexes=found)
            for name, found in indexes.items()
        ],
        groups=[
            OffsetFetchRequestGroup(
                group_id=member.group,
                member_id=member.member_id or None,
                member_epoch=member.generation,
                topics=[
                    OffsetFetchRequestTopics(name=name, topic_id=ids[name], partition_indexes=found)
                    for name, found in indexes.items()
                ],
            )
        ],
        require_stable=True,
    )


def committed_to(
    member: GroupMetadata,
    response: OffsetFetchResponse,
    version: int,
    ids: Mapping[str, Uuid],
) -> dict[TopicPartition, Offset]:
    """Committed offsets of the partitions that have one; raises the response's error."""
    names = {topic: name for name, topic in ids.items()}
    found = {}
    for topic in group_offsets(member.group, response, version).topics:
        name = topic.name
        if not name and isinstance(topic, OffsetFetchResponseTopics):
            name = names.get(topic.topic_id, "")
        for each in topic.partitions:
            if each.committed_offset >= 0:
                found[TopicPartition(name, each.partition_index)] = Offset(each.committed_offset)
    return found


def member_commit_request(
    member: GroupMetadata, offsets: Mapping[TopicPartition, Offset], ids: Mapping[str, Uuid]
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=ids[name],
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=each.partition, committed_offset=offsets[each]
                    )
                    for each in partitions
                ],
            )
            for name, partitions in by_topic(offsets).items()
        ],
    )


def check_member_commit(member: GroupMetadata, response: OffsetCommitResponse) -> None:
    for topic in response.topics:
        for each in topic.partitions:
            check(each.error_code, f"commit of group {member.group}")
