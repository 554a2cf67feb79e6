"""A group of the consumer protocol, as a value: each record makes another one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from enum import Enum
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from penstock.coordinator.group.consumer.member import NOTHING, ConsumerMember, MemberState, Share
from penstock.coordinator.group.consumer.records import (
    ConsumerRecord,
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
    classic_terms,
    member_tombstones,
    share_of,
)
from penstock.coordinator.group.embedded import CONSUMER
from penstock.coordinator.group.member import ProtocolMetadata
from penstock.types import Uuid

FIRST_EPOCH = 1
"""Of a group that nobody has joined yet, so that its first member comes to the second, as with
Kafka: 0 is the epoch of members who join.
"""

NO_HASH = 0
"""Of topics that nobody has looked at, and so none's."""


class GroupState(Enum):
    """By the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target is of an older epoch than the group."""
    RECONCILING = "Reconciling"
    """Not every member has what the target gives it."""
    STABLE = "Stable"
    DEAD = "Dead"


class Topic(Protocol):
    """What a group needs to know of a topic."""

    @property
    def id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sized: ...


Topics = Mapping[str, Topic]
"""The topics of the cluster by name; never changed in place."""


class ConsumerGroup(msgspec.Struct, frozen=True):
    """Epoch, members, and the target that members move towards.

    Each partition is held by one member at most: given out only when nobody has it.
    """

    id: str
    epoch: int = 0
    metadata_hash: int = NO_HASH
    members: Mapping[str, ConsumerMember] = {}
    target_epoch: int = 0
    target: Mapping[str, Share] = {}
    regexes: Mapping[str, frozenset[str]] = {}
    """The topics that each expression in use matched when it was last looked at."""

    # What no record holds:
    seen: Topics | None = None
    """The topics that all this rests on; others are noticed because it is not they."""
    seen_ms: int = 0
    """When that was, in steady time."""
    assigned_ms: int | None = None
    """When the target was last worked out, or could not be; None: not by this coordinator."""
    rebalance_reason: str = ""
    rebalance_began_ms: int = 0

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        target_epoch = self.target_epoch
        for each in self.members.values():  # asked at every heartbeat: no call for each member
            if each.epoch != target_epoch or each.state is not MemberState.STABLE:
                return GroupState.RECONCILING
        return GroupState.STABLE

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def supports(self, protocol_type: str, protocols: Iterable[ProtocolMetadata]) -> bool:
        """A newcomer of the classic protocol must know a strategy that all of its kind know, lest
        the group could not become classic again.
        """
        names = {each.name for each in protocols}
        terms = [each.classic for each in self.members.values() if each.classic is not None]
        common = [{each.name for each in known.protocols} for known in terms]
        return protocol_type == CONSUMER and bool(names.intersection(*common))

    def taken(self, member_id: str) -> Share:
        """What others than this member have, or have not given up yet."""
        others = (each for each in self.members.values() if each.id != member_id)
        return NOTHING.union(*(each.holds for each in others))

    def waits(self, member: ConsumerMember) -> bool:
        """What it still lacks is with others."""
        lacks = self.target.get(member.id, NOTHING) - member.assigned
        return not lacks.isdisjoint(self.taken(member.id))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        return member.topics | self.regexes.get(member.regex or "", frozenset())

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self.topics_of, self.members.values()))

    def assignor(self, default: str) -> str:
        """What most members ask for."""
        votes = Counter(each.assignor for each in self.members.values() if each.assignor)
        return votes.most_common(1)[0][0] if votes else default

    def hash_of(self, topics: Topics) -> int:
        """Another number whenever the topics that members read are others, or larger."""
        digest = sha256()
        for name in sorted(self.subscribed_topics & topics.keys()):
            topic = topics[name]
            digest.update(topic.id + len(topic.partitions).to_bytes(4, "big"))
        return int.from_bytes(digest.digest()[:8], "big", signed=True)

    def next_deadline_ms(self) -> int | None:
        return min((each.next_deadline_ms() for each in self.members.values()), default=None)

    def tombstones(self) -> Iterator[ConsumerRecord]:
        """All that has to be written for the group to be gone."""
        for member_id in self.members:
            yield from member_tombstones(self.id, member_id)
        for regex in self.regexes:
            yield ConsumerRecord(RegexKey(self.id, regex), None)
        yield ConsumerRecord(TargetEpochKey(self.id), None)
        yield ConsumerRecord(EpochKey(self.id), None)


def new_group(name: str) -> ConsumerGroup:
    return ConsumerGroup(name, epoch=FIRST_EPOCH, target_epoch=FIRST_EPOCH)


def replayed(group: ConsumerGroup, record: ConsumerRecord) -> ConsumerGroup | None:
    """The group after a record; None: it has gone. Compaction may leave records in any order."""

    def change(**fields: Any) -> ConsumerGroup:
        return msgspec.structs.replace(group, **fields)

    def put(member_id: str, **fields: Any) -> ConsumerGroup:
        known = group.members.get(member_id) or ConsumerMember(id=member_id)
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
                classic=classic_terms(value.classic_member_metadata),
            )
        case MemberKey(_, member_id), None:
            return change(members=_without(group.members, member_id))
        case TargetEpochKey(), TargetEpochValue(epoch):
            return change(target_epoch=epoch)
        case TargetEpochKey(), None:
            return change(target_epoch=0)
        case TargetKey(_, member_id), TargetValue(topics):
            return change(target={**group.target, member_id: share_of(topics)})
        case TargetKey(_, member_id), None:
            return change(target=_without(group.target, member_id))
        case CurrentKey(_, member_id), CurrentValue() as value:
            return put(
                member_id,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=share_of(value.assigned_partitions),
                revoking=share_of(value.partitions_pending_revocation),
            )
        case CurrentKey(_, member_id), None if member_id in group.members:
            return put(member_id, assigned=NOTHING, revoking=NOTHING)
        case RegexKey(_, regex), RegexValue(topics):
            return change(regexes={**group.regexes, regex: frozenset(topics)})
        case RegexKey(_, regex), None:
            return change(regexes=_without(group.regexes, regex))
        case _:
            return group


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in mapping.items() if k != key}
