"""A group of the consumer protocol, as a value: each record makes a new one."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from penstock.coordinator.group.classic.embedded_protocol import CONSUMER
from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.consumer.member import (
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
    MemberState,
)
from penstock.coordinator.group.consumer.records import (
    ConsumerGroupRecord,
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    assignment_of,
    classic_settings,
    member_tombstones,
)
from penstock.types import Uuid

FIRST_EPOCH = 1
"""The epoch of a new group, so that its first member gets epoch 2, as in Kafka. Epoch 0 is that of
members that join.
"""

NO_HASH = 0
"""The metadata hash before the group has looked at topics; no set of topics has it."""


class ConsumerGroupState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target assignment is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """Not every member has reached its target assignment."""
    STABLE = "Stable"
    DEAD = "Dead"


class GroupTopic(Protocol):
    """The part of a topic that groups use."""

    @property
    def id(self) -> Uuid: ...

    @property
    def partitions(self) -> Collection[int]: ...


Topics = Mapping[str, GroupTopic]
"""The topics of the cluster by name. Never changed in place: a change makes a new mapping."""


class ConsumerGroup(msgspec.Struct, frozen=True):
    """Epoch, members, and the target assignment that members move towards.

    At most one member holds a partition: it is assigned only once no other member has it.
    """

    id: str
    epoch: int = 0
    metadata_hash: int = NO_HASH
    members: Mapping[str, ConsumerGroupMember] = {}
    target_epoch: int = 0
    target: Mapping[str, Assignment] = {}
    regexes: Mapping[str, frozenset[str]] = {}
    """The topics that each regular expression in use matched when it was last resolved."""

    # Soft state, in no record:
    topics_seen: Topics | None = None
    """The topics that the epoch rests on; compared by identity to notice a change."""
    topics_seen_ms: int = 0
    """When the group looked at the topics, in steady time."""
    assigned_ms: int | None = None
    """When the last assignment was computed, or failed; None: not by this coordinator."""
    rebalance_reason: str = ""
    rebalance_began_ms: int = 0

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        target_epoch = self.target_epoch
        for each in self.members.values():  # runs at every heartbeat: no call per member
            if each.epoch != target_epoch or each.state is not MemberState.STABLE:
                return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def supports(self, protocol_type: str, protocols: Iterable[ProtocolMetadata]) -> bool:
        """Whether a joining classic member supports a strategy that all classic members support.

        Otherwise the group could not become classic again.
        """
        names = {each.name for each in protocols}
        settings = [each.classic for each in self.members.values() if each.classic is not None]
        common = [{each.name for each in known.protocols} for known in settings]
        return protocol_type == CONSUMER and bool(names.intersection(*common))

    def held_by_others(self, member_id: str) -> Assignment:
        """The partitions that other members have, or have not revoked yet."""
        others = (each for each in self.members.values() if each.id != member_id)
        return NO_PARTITIONS.union(*(each.holds for each in others))

    def waits_for_others(self, member: ConsumerGroupMember) -> bool:
        """Whether other members still hold partitions of its target assignment."""
        lacks = self.target.get(member.id, NO_PARTITIONS) - member.assigned
        return not lacks.isdisjoint(self.held_by_others(member.id))

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        return member.topics | self.regexes.get(member.regex or "", frozenset())

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self.topics_of, self.members.values()))

    def assignor(self, default: str) -> str:
        """The assignor that most members ask for."""
        votes = Counter(each.assignor for each in self.members.values() if each.assignor)
        return votes.most_common(1)[0][0] if votes else default

    def hash_of(self, topics: Topics) -> int:
        return topics_hash(self.subscribed_topics, topics)

    def next_deadline_ms(self) -> int | None:
        return min((each.next_deadline_ms() for each in self.members.values()), default=None)

    def tombstones(self) -> Iterator[ConsumerGroupRecord]:
        """The tombstones that remove the group."""
        for member_id in self.members:
            yield from member_tombstones(self.id, member_id)
        for regex in self.regexes:
            yield ConsumerGroupRecord(RegexKey(self.id, regex), None)
        yield ConsumerGroupRecord(TargetEpochKey(self.id), None)
        yield ConsumerGroupRecord(EpochKey(self.id), None)


def topics_hash(subscribed: frozenset[str], topics: Topics) -> int:
    """A hash that changes whenever the subscribed topics or their partition counts do."""
    digest = sha256()
    for name in sorted(subscribed & topics.keys()):
        topic = topics[name]
        digest.update(topic.id + len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest()[:8], "big", signed=True)


def new_group(name: str) -> ConsumerGroup:
    return ConsumerGroup(name, epoch=FIRST_EPOCH, target_epoch=FIRST_EPOCH)


def replayed(group: ConsumerGroup, record: ConsumerGroupRecord) -> ConsumerGroup | None:
    """The group after a record; None: it is gone. Compaction may leave records in any order."""

    def change(**fields: Any) -> ConsumerGroup:
        return msgspec.structs.replace(group, **fields)

    def put(member_id: str, **fields: Any) -> ConsumerGroup:
        known = group.members.get(member_id) or ConsumerGroupMember(id=member_id)
        member = msgspec.structs.replace(known, **fields)
        return change(members={**group.members, member_id: member})

    match record.key, record.value:
        case EpochKey(), EpochValue(epoch, metadata_hash):
            return change(epoch=epoch, metadata_hash=metadata_hash)
        case EpochKey(), None:
            return None
        case MemberKey(_, member_id), MemberValue() as value:
            return put(
                member_id,
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                topics=frozenset(value.subscribed_topic_names),
                regex=value.subscribed_topic_regex,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                assignor=value.server_assignor,
                classic=classic_settings(value.classic_member_metadata),
            )
        case MemberKey(_, member_id), None:
            return change(members=without(group.members, member_id))
        case TargetEpochKey(), TargetEpochValue(epoch):
            return change(target_epoch=epoch)
        case TargetEpochKey(), None:
            return change(target_epoch=0)
        case TargetKey(_, member_id), TargetValue(topics):
            return change(target={**group.target, member_id: assignment_of(topics)})
        case TargetKey(_, member_id), None:
            return change(target=without(group.target, member_id))
        case CurrentKey(_, member_id), CurrentValue() as value:
            return put(
                member_id,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=assignment_of(value.assigned_partitions),
                revoking=assignment_of(value.partitions_pending_revocation),
            )
        case CurrentKey(_, member_id), None if member_id in group.members:
            return put(member_id, assigned=NO_PARTITIONS, revoking=NO_PARTITIONS)
        case RegexKey(_, regex), RegexValue(topics):
            return change(regexes={**group.regexes, regex: frozenset(topics)})
        case RegexKey(_, regex), None:
            return change(regexes=without(group.regexes, regex))
        case _:
            return group


def without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in mapping.items() if k != key}
