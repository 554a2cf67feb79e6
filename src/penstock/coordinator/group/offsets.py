"""Committed offsets of groups: who may commit them, and when they expire."""

from collections.abc import Mapping

import msgspec

from penstock.coordinator.group.classic.embedded_protocol import CONSUMER
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnstableOffsetCommit,
)
from penstock.types import NO_UUID, TopicPartition, Uuid


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """A group's position in a partition. Times are wall times; `expire_ms` -1: no own expiry."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = -1
    topic_id: Uuid = NO_UUID


Offsets = Mapping[TopicPartition, CommittedOffset]
FetchedOffsets = Mapping[TopicPartition, CommittedOffset | UnstableOffsetCommit]
"""The offset of each partition, or the error instead of it."""


class Committer(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a commit; administrators and simple consumers have no generation."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    knows_epochs: bool = False
    """The client understands GROUP_ID_NOT_FOUND and member epochs (v9)."""
    is_transactional: bool = False
    """The commit is part of a transaction. Before KIP-447 producers did not name the member."""


def check_commit(group: ClassicGroup | None, committer: Committer) -> None:
    """Refuse a commit by a sender that no longer owns the partitions."""
    generation = committer.generation
    if group is None:
        if generation >= 0:
            if committer.knows_epochs:
                raise GroupIdNotFound("the group has gone")
            raise IllegalGeneration("the group has gone")
        return
    if generation < 0 and group.state is ClassicGroupState.EMPTY:
        return
    if generation >= 0 or committer.member_id or committer.instance_id is not None:
        group.checked_member(committer.member_id, committer.instance_id)
        group.check_generation(generation)
    elif not committer.is_transactional:
        raise UnknownMemberId(f"{group.id} has members, and the commit names none of them")
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The member knows the generation, but not its assignment in it yet.
        raise RebalanceInProgress(f"{group.id} rebalances")


def metadata_too_large(metadata: str, limit: int) -> OffsetMetadataTooLarge | None:
    """The error if the metadata of an offset is too long."""
    if len(metadata) <= limit:
        return None
    return OffsetMetadataTooLarge(f"{len(metadata)} characters, at most {limit}")


def expired_offsets(
    group: ClassicGroup, offsets: Offsets, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions whose offsets have not been used for the retention time (KIP-211).

    Retention counts from when the group became empty. For a simple consumer, and for a topic that
    a stable group no longer subscribes to, it counts from the commit.
    """
    if group.protocol_type is None:
        since_ms = None
    elif group.state is ClassicGroupState.EMPTY:
        since_ms = group.state_since_ms
    elif group.protocol_type == CONSUMER and group.state is ClassicGroupState.STABLE:
        since_ms = None
    else:
        return []

    subscribed = group.subscribed_topics  # once: it reads the subscriptions of all members
    if subscribed is None and group.protocol_type == CONSUMER:
        return []  # they cannot be read: it may be subscribed to all

    def is_expired(topic_partition: TopicPartition, committed: CommittedOffset) -> bool:
        if topic_partition.topic in (subscribed or ()):
            return False
        if committed.expire_ms >= 0:
            return now_ms >= committed.expire_ms
        return now_ms - (committed.commit_ms if since_ms is None else since_ms) >= retention_ms

    return [
        topic_partition
        for topic_partition, committed in offsets.items()
        if is_expired(topic_partition, committed)
    ]
