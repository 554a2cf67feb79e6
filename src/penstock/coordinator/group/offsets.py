"""Committed offsets, who may commit them, and when they are forgotten."""

from collections.abc import Mapping

import msgspec

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.embedded import CONSUMER
from penstock.coordinator.group.refusal import (
    GroupIdNotFound,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnstableOffsetCommit,
)
from penstock.coordinator.group.state import State
from penstock.types import NO_UUID, TopicPartition, Uuid


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """Where a group goes on in a partition. Times are wall times; -1: as long as the group."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = -1
    topic_id: Uuid = NO_UUID


Offsets = Mapping[TopicPartition, CommittedOffset]
FetchedOffsets = Mapping[TopicPartition, CommittedOffset | UnstableOffsetCommit]
"""The offset of each partition, or why it cannot be told now."""


class Committer(msgspec.Struct, frozen=True, kw_only=True):
    """Who commits; an administrator or a consumer without membership has no generation."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    knows_epochs: bool = False
    """The client knows GROUP_ID_NOT_FOUND, and members of the consumer protocol (v9)."""
    is_transactional: bool = False
    """Before KIP-447 producers did not tell whose offsets they commit."""


def check_commit(group: ClassicGroup | None, committer: Committer) -> None:
    """Refuse a commit of somebody who does not own the partitions any more."""
    generation = committer.generation
    if group is None:
        if generation >= 0:
            if committer.knows_epochs:
                raise GroupIdNotFound("the group has gone")
            raise IllegalGeneration("the group has gone")
        return
    if generation < 0 and group.state is State.EMPTY:
        return
    if generation >= 0 or committer.member_id or committer.instance_id is not None:
        group.checked_member(committer.member_id, committer.instance_id)
        group.check_generation(generation)
    elif not committer.is_transactional:
        raise UnknownMemberId(f"{group.id} has members, and this is none")
    if group.state is State.COMPLETING_REBALANCE:
        # It has heard of the generation, but not of its share in it.
        raise RebalanceInProgress(f"{group.id} rebalances")


def too_large(metadata: str, limit: int) -> OffsetMetadataTooLarge | None:
    """Why this text cannot be kept beside an offset, if it cannot."""
    if len(metadata) <= limit:
        return None
    return OffsetMetadataTooLarge(f"{len(metadata)} characters, at most {limit}")


def expired(
    group: ClassicGroup, offsets: Offsets, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions whose offsets nobody has needed for the retention time (KIP-211).

    It counts from when the group became empty; for a consumer without membership, and for a
    topic that a stable group reads no more, from the commit.
    """
    if group.protocol_type is None:
        since_ms = None
    elif group.state is State.EMPTY:
        since_ms = group.state_since_ms
    elif group.protocol_type == CONSUMER and group.state is State.STABLE:
        since_ms = None
    else:
        return []

    def is_expired(where: TopicPartition, committed: CommittedOffset) -> bool:
        if group.is_subscribed(where.topic):
            return False
        if committed.expire_ms >= 0:
            return now_ms >= committed.expire_ms
        return now_ms - (committed.commit_ms if since_ms is None else since_ms) >= retention_ms

    return [where for where, committed in offsets.items() if is_expired(where, committed)]
