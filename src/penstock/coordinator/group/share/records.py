"""The records of share groups, in Kafka's formats."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.consumer.member import Assignment
from penstock.coordinator.group.consumer.records import by_topic
from penstock.coordinator.group.share.member import ShareGroupMember, StateTopic
from penstock.types import Uuid
from penstock.wire.messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from penstock.wire.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from penstock.wire.messages.share_group_current_member_assignment_value import (
    TopicPartitions as CurrentTopic,
)
from penstock.wire.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from penstock.wire.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from penstock.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from penstock.wire.messages.share_group_metadata_value import ShareGroupMetadataValue
from penstock.wire.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from penstock.wire.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from penstock.wire.messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from penstock.wire.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from penstock.wire.messages.share_group_target_assignment_member_value import (
    TopicPartition as TargetTopic,
)
from penstock.wire.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from penstock.wire.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from penstock.wire.schema import Message

# Short names for Kafka's records.
MemberKey: TypeAlias = ShareGroupMemberMetadataKey
MemberValue: TypeAlias = ShareGroupMemberMetadataValue
EpochKey: TypeAlias = ShareGroupMetadataKey
EpochValue: TypeAlias = ShareGroupMetadataValue
TargetEpochKey: TypeAlias = ShareGroupTargetAssignmentMetadataKey
TargetEpochValue: TypeAlias = ShareGroupTargetAssignmentMetadataValue
TargetKey: TypeAlias = ShareGroupTargetAssignmentMemberKey
TargetValue: TypeAlias = ShareGroupTargetAssignmentMemberValue
CurrentKey: TypeAlias = ShareGroupCurrentMemberAssignmentKey
CurrentValue: TypeAlias = ShareGroupCurrentMemberAssignmentValue
StateKey: TypeAlias = ShareGroupStatePartitionMetadataKey
StateValue: TypeAlias = ShareGroupStatePartitionMetadataValue

Key: TypeAlias = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | StateKey

SHARE_KINDS: Mapping[int, tuple[type[Key], type[Message]]] = {
    10: (MemberKey, MemberValue),
    11: (EpochKey, EpochValue),
    12: (TargetEpochKey, TargetEpochValue),
    13: (TargetKey, TargetValue),
    14: (CurrentKey, CurrentValue),
    15: (StateKey, StateValue),
}
"""Key and value by record type."""

SHARE_NUMBERS: Mapping[type[Key], int] = {key: number for number, (key, _) in SHARE_KINDS.items()}
STABLE = 1
"""The only state of a share group's member: no partition has to be revoked before others get it."""


class ShareGroupRecord(msgspec.Struct, frozen=True):
    """A new value for one part of a share group; None removes it."""

    key: Key
    value: Message | None

    @property
    def group(self) -> str:
        return self.key.group_id


def member_record(group: str, member: ShareGroupMember) -> ShareGroupRecord:
    return ShareGroupRecord(
        MemberKey(group, member.id),
        MemberValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
        ),
    )


def epoch_record(group: str, epoch: int, metadata_hash: int) -> ShareGroupRecord:
    return ShareGroupRecord(EpochKey(group), EpochValue(epoch, metadata_hash))


def target_epoch_record(group: str, epoch: int, now_ms: int) -> ShareGroupRecord:
    return ShareGroupRecord(TargetEpochKey(group), TargetEpochValue(epoch, now_ms))


def target_record(group: str, member_id: str, assignment: Assignment) -> ShareGroupRecord:
    topics = [TargetTopic(*each) for each in by_topic(assignment)]
    return ShareGroupRecord(TargetKey(group, member_id), TargetValue(topics))


def current_record(group: str, member: ShareGroupMember) -> ShareGroupRecord:
    return ShareGroupRecord(
        CurrentKey(group, member.id),
        CurrentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=STABLE,
            assigned_partitions=[CurrentTopic(*each) for each in by_topic(member.assigned)],
        ),
    )


def state_record(group: str, initialized: Mapping[Uuid, StateTopic]) -> ShareGroupRecord:
    """The record of the partitions that have state with the share coordinator."""
    return ShareGroupRecord(
        StateKey(group),
        StateValue(
            initializing_topics=[],
            initialized_topics=[
                TopicPartitionsInfo(topic_id, topic.name, sorted(topic.partitions))
                for topic_id, topic in initialized.items()
            ],
            deleting_topics=[],
        ),
    )


def member_tombstones(group: str, member_id: str) -> list[ShareGroupRecord]:
    """A member's tombstones in Kafka's order: current assignment, target assignment, metadata."""
    return [
        ShareGroupRecord(CurrentKey(group, member_id), None),
        ShareGroupRecord(TargetKey(group, member_id), None),
        ShareGroupRecord(MemberKey(group, member_id), None),
    ]
