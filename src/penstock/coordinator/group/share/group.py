"""A share group, as a value: each record makes a new one."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec

from penstock.coordinator.group.consumer.group import NO_HASH, Topics, topics_hash, without
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.coordinator.group.consumer.records import assignment_of
from penstock.coordinator.group.share.member import ShareGroupMember, StateTopic
from penstock.coordinator.group.share.records import (
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    ShareGroupRecord,
    StateKey,
    StateValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    member_tombstones,
)
from penstock.types import TopicIdPartition, Uuid


class ShareGroupState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareGroup(msgspec.Struct, frozen=True):
    """Epoch, members, their target assignment, and the partitions that have state.

    Several members may have a partition. Only partitions with state are assigned.
    """

    id: str
    epoch: int = 0
    metadata_hash: int = NO_HASH
    members: Mapping[str, ShareGroupMember] = {}
    target_epoch: int = 0
    target: Mapping[str, Assignment] = {}
    initialized: Mapping[Uuid, StateTopic] = {}

    # Soft state, in no record:
    topics_seen: Topics | None = None
    """The topics that the epoch rests on; compared by identity to notice a change."""
    assigned_ms: int | None = None
    """When the last assignment was computed; None: not by this coordinator."""

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.topics for each in self.members.values()))

    def hash_of(self, topics: Topics) -> int:
        return topics_hash(self.subscribed_topics, topics)

    def assignable(self) -> set[TopicIdPartition]:
        return {
            TopicIdPartition(topic_id, index)
            for topic_id, topic in self.initialized.items()
            for index in topic.partitions
        }

    def without_state(self, topics: Topics) -> dict[Uuid, StateTopic]:
        """Partitions of subscribed topics that have no state yet."""
        found = {}
        for name in self.subscribed_topics & topics.keys():
            topic = topics[name]
            known = self.initialized.get(topic.id)
            lacks = frozenset(topic.partitions) - (known.partitions if known else frozenset())
            if lacks:
                found[topic.id] = StateTopic(name, lacks)
        return found

    def next_deadline_ms(self) -> int | None:
        return min((each.deadline_ms for each in self.members.values()), default=None)

    def tombstones(self) -> Iterator[ShareGroupRecord]:
        """The tombstones that remove the group."""
        for member_id in self.members:
            yield from member_tombstones(self.id, member_id)
        yield ShareGroupRecord(TargetEpochKey(self.id), None)
        yield ShareGroupRecord(StateKey(self.id), None)
        yield ShareGroupRecord(EpochKey(self.id), None)


def replayed_share(group: ShareGroup, record: ShareGroupRecord) -> ShareGroup | None:
    """The group after a record; None: it is gone. Compaction may leave records in any order."""

    def change(**fields: Any) -> ShareGroup:
        return msgspec.structs.replace(group, **fields)

    def put(member_id: str, **fields: Any) -> ShareGroup:
        known = group.members.get(member_id) or ShareGroupMember(id=member_id)
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
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                topics=frozenset(value.subscribed_topic_names),
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
                assigned=assignment_of(value.assigned_partitions),
            )
        case CurrentKey(_, member_id), None if member_id in group.members:
            return put(member_id, assigned=NO_PARTITIONS)
        case StateKey(), StateValue(_, topics):
            return change(
                initialized={
                    each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions))
                    for each in topics
                }
            )
        case StateKey(), None:
            return change(initialized={})
        case _:
            return group
