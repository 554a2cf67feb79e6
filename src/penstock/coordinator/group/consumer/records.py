"""The records of groups of the consumer protocol, in Kafka's formats."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.consumer.member import (
    Assignment,
    ClassicMemberSettings,
    ConsumerGroupMember,
    MemberState,
)
from penstock.errors import ProtocolError
from penstock.types import TopicIdPartition, Uuid
from penstock.wire.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from penstock.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from penstock.wire.messages.consumer_group_current_member_assignment_value import (
    TopicPartitions as CurrentTopic,
)
from penstock.wire.messages.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from penstock.wire.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from penstock.wire.messages.consumer_group_metadata_key import (
    ConsumerGroupMetadataKey,
)
from penstock.wire.messages.consumer_group_metadata_value import (
    ConsumerGroupMetadataValue,
)
from penstock.wire.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from penstock.wire.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from penstock.wire.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from penstock.wire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from penstock.wire.messages.consumer_group_target_assignment_member_value import (
    TopicPartition as TargetTopic,
)
from penstock.wire.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from penstock.wire.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from penstock.wire.schema import Message

# Short names for Kafka's records.
CurrentKey: TypeAlias = ConsumerGroupCurrentMemberAssignmentKey
CurrentValue: TypeAlias = ConsumerGroupCurrentMemberAssignmentValue
MemberKey: TypeAlias = ConsumerGroupMemberMetadataKey
MemberValue: TypeAlias = ConsumerGroupMemberMetadataValue
EpochKey: TypeAlias = ConsumerGroupMetadataKey
EpochValue: TypeAlias = ConsumerGroupMetadataValue
RegexKey: TypeAlias = ConsumerGroupRegularExpressionKey
RegexValue: TypeAlias = ConsumerGroupRegularExpressionValue
TargetKey: TypeAlias = ConsumerGroupTargetAssignmentMemberKey
TargetValue: TypeAlias = ConsumerGroupTargetAssignmentMemberValue
TargetEpochKey: TypeAlias = ConsumerGroupTargetAssignmentMetadataKey
TargetEpochValue: TypeAlias = ConsumerGroupTargetAssignmentMetadataValue

Key: TypeAlias = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey

KINDS: Mapping[int, tuple[type[Key], type[Message]]] = {
    3: (EpochKey, EpochValue),
    5: (MemberKey, MemberValue),
    6: (TargetEpochKey, TargetEpochValue),
    7: (TargetKey, TargetValue),
    8: (CurrentKey, CurrentValue),
    16: (RegexKey, RegexValue),
}
"""Key and value by record type. Type 4 had the metadata of topics before Kafka 4.1."""

MEMBER_STATES = frozenset(MemberState)
NUMBERS: Mapping[type[Key], int] = {key: number for number, (key, _) in KINDS.items()}


class ConsumerGroupRecord(msgspec.Struct, frozen=True):
    """A new value for one part of a group; None removes it."""

    key: Key
    value: Message | None

    @property
    def group(self) -> str:
        return self.key.group_id


def checked(record: ConsumerGroupRecord) -> ConsumerGroupRecord:
    """Refuse a record with an unknown member state."""
    value = record.value
    if isinstance(value, CurrentValue) and value.state not in MEMBER_STATES:
        raise ProtocolError(f"member state {value.state} is unknown")
    return record


def epoch_record(group: str, epoch: int, metadata_hash: int) -> ConsumerGroupRecord:
    return ConsumerGroupRecord(EpochKey(group), EpochValue(epoch, metadata_hash))


def member_record(group: str, member: ConsumerGroupMember) -> ConsumerGroupRecord:
    return ConsumerGroupRecord(
        MemberKey(group, member.id),
        MemberValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            # It must be an explicit null: Kafka reads a missing field as an empty struct, and so
            # as a member of the classic protocol.
            classic_member_metadata=None
            if member.classic is None
            else _classic_metadata(member.classic),
        ),
    )


def _classic_metadata(classic: ClassicMemberSettings) -> ClassicMemberMetadata:
    protocols = [ClassicProtocol(each.name, each.metadata) for each in classic.protocols]
    return ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def classic_settings(stored: ClassicMemberMetadata | None) -> ClassicMemberSettings | None:
    """None for a member of the consumer protocol."""
    if stored is None:
        return None
    protocols = (ProtocolMetadata(each.name, each.metadata) for each in stored.supported_protocols)
    return ClassicMemberSettings(stored.session_timeout_ms, tuple(protocols))


def target_epoch_record(group: str, epoch: int, now_ms: int) -> ConsumerGroupRecord:
    return ConsumerGroupRecord(TargetEpochKey(group), TargetEpochValue(epoch, now_ms))


def target_record(group: str, member_id: str, assignment: Assignment) -> ConsumerGroupRecord:
    topics = [TargetTopic(topic, indexes) for topic, indexes in by_topic(assignment)]
    return ConsumerGroupRecord(TargetKey(group, member_id), TargetValue(topics))


def current_record(group: str, member: ConsumerGroupMember) -> ConsumerGroupRecord:
    return ConsumerGroupRecord(
        CurrentKey(group, member.id),
        CurrentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=[CurrentTopic(*each) for each in by_topic(member.assigned)],
            partitions_pending_revocation=[
                CurrentTopic(*each) for each in by_topic(member.revoking)
            ],
        ),
    )


def regex_record(group: str, regex: str, topics: Iterable[str], now_ms: int) -> ConsumerGroupRecord:
    # The version is that of KRaft's metadata, which does not exist here.
    return ConsumerGroupRecord(RegexKey(group, regex), RegexValue(sorted(topics), 0, now_ms))


def member_tombstones(group: str, member_id: str) -> list[ConsumerGroupRecord]:
    """A member's tombstones in Kafka's order: current assignment, target assignment, metadata."""
    return [
        ConsumerGroupRecord(CurrentKey(group, member_id), None),
        ConsumerGroupRecord(TargetKey(group, member_id), None),
        ConsumerGroupRecord(MemberKey(group, member_id), None),
    ]


def by_topic(assignment: Assignment) -> list[tuple[Uuid, list[int]]]:
    """The partitions grouped by topic and sorted, as in messages."""
    found: dict[Uuid, list[int]] = {}
    for topic, index in sorted(assignment):
        found.setdefault(topic, []).append(index)
    return list(found.items())


class TopicIndexes(Protocol):
    """A topic's partitions in any message."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> list[int]: ...


def assignment_of(topics: Iterable[TopicIndexes]) -> Assignment:
    return frozenset(
        TopicIdPartition(each.topic_id, index) for each in topics for index in each.partitions
    )
