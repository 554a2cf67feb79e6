"""The records that keep a group of the consumer protocol, in Kafka's formats."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from penstock.coordinator.group.consumer.member import (
    ClassicTerms,
    ConsumerMember,
    MemberState,
    Share,
    TopicIdPartition,
)
from penstock.coordinator.group.member import ProtocolMetadata
from penstock.errors import ProtocolError
from penstock.types import Uuid
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

# Kafka's names, shorter.
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
"""Key and value by the number that begins a key. 4 held the topics' metadata before Kafka 4.1."""

MEMBER_STATES = frozenset(MemberState)
NUMBERS: Mapping[type[Key], int] = {key: number for number, (key, _) in KINDS.items()}


class ConsumerRecord(msgspec.Struct, frozen=True):
    """Something about a group is so from now on; without a value, it has gone."""

    key: Key
    value: Message | None

    @property
    def group(self) -> str:
        return self.key.group_id


def checked(record: ConsumerRecord) -> ConsumerRecord:
    """Refuse a record whose values mean nothing here."""
    value = record.value
    if isinstance(value, CurrentValue) and value.state not in MEMBER_STATES:
        raise ProtocolError(f"state {value.state} of a member is not known")
    return record


def epoch_record(group: str, epoch: int, metadata_hash: int) -> ConsumerRecord:
    return ConsumerRecord(EpochKey(group), EpochValue(epoch, metadata_hash))


def member_record(group: str, member: ConsumerMember) -> ConsumerRecord:
    return ConsumerRecord(
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
            # Left out it would mean an empty one to Kafka, and a member of the classic protocol.
            classic_member_metadata=None if member.classic is None else _told(member.classic),
        ),
    )


def _told(classic: ClassicTerms) -> ClassicMemberMetadata:
    protocols = [ClassicProtocol(each.name, each.metadata) for each in classic.protocols]
    return ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def classic_terms(told: ClassicMemberMetadata | None) -> ClassicTerms | None:
    """None for a member of the consumer protocol."""
    if told is None:
        return None
    protocols = (ProtocolMetadata(each.name, each.metadata) for each in told.supported_protocols)
    return ClassicTerms(told.session_timeout_ms, tuple(protocols))


def target_epoch_record(group: str, epoch: int, now_ms: int) -> ConsumerRecord:
    return ConsumerRecord(TargetEpochKey(group), TargetEpochValue(epoch, now_ms))


def target_record(group: str, member_id: str, share: Share) -> ConsumerRecord:
    topics = [TargetTopic(topic, indexes) for topic, indexes in by_topic(share)]
    return ConsumerRecord(TargetKey(group, member_id), TargetValue(topics))


def current_record(group: str, member: ConsumerMember) -> ConsumerRecord:
    return ConsumerRecord(
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


def regex_record(group: str, regex: str, topics: Iterable[str], now_ms: int) -> ConsumerRecord:
    # The version is that of KRaft's metadata, which there is none of here.
    return ConsumerRecord(RegexKey(group, regex), RegexValue(sorted(topics), 0, now_ms))


def member_tombstones(group: str, member_id: str) -> list[ConsumerRecord]:
    """In Kafka's order: what it has, what it was to have, who it was."""
    return [
        ConsumerRecord(CurrentKey(group, member_id), None),
        ConsumerRecord(TargetKey(group, member_id), None),
        ConsumerRecord(MemberKey(group, member_id), None),
    ]


def by_topic(share: Share) -> list[tuple[Uuid, list[int]]]:
    """Partitions as messages have them, in order."""
    found: dict[Uuid, list[int]] = {}
    for topic, index in sorted(share):
        found.setdefault(topic, []).append(index)
    return list(found.items())


class TopicIndexes(Protocol):
    """Partitions of a topic, in whatever message."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> list[int]: ...


def share_of(topics: Iterable[TopicIndexes]) -> Share:
    return frozenset(
        TopicIdPartition(each.topic_id, index) for each in topics for index in each.partitions
    )
