"""Operations on share groups: heartbeats, and which of their partitions have state."""

from collections.abc import Collection, Mapping

from penstock.coordinator.group.errors import GroupIdNotFound, NonEmptyGroup
from penstock.coordinator.group.result import GroupResult, share_result
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.share import heartbeat as heartbeats
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from penstock.coordinator.group.share.member import StateTopic
from penstock.coordinator.result import CoordinatorResult, EmptyReply, Now, PendingReply, answer
from penstock.types import Uuid


def heartbeat(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[ShareHeartbeatReply],
    group: str,
    request: ShareHeartbeat,
) -> GroupResult:
    heartbeats.check(request)
    known = shard.share_groups.get(group)
    if known is None:
        if shard.is_other_than(shard.share_groups, group):
            raise GroupIdNotFound(f"Group {group} is not a share group.")
        if request.epoch != heartbeats.JOIN_EPOCH:
            kind = "Group" if request.epoch < heartbeats.JOIN_EPOCH else "Share group"
            raise GroupIdNotFound(f"{kind} {group} not found.")
        known = heartbeats.new_group(group)
    draft = shard.share_draft(known, now)
    reply = heartbeats.heartbeat(draft, request)
    return share_result(draft, (answer(pending, reply),))


def describe(shard: GroupShard, pending: PendingReply[ShareGroup], group: str) -> GroupResult:
    return CoordinatorResult(answers=(answer(pending, _known(shard, group)),), reads_state=True)


def with_state(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[EmptyReply],
    group: str,
    topics: Mapping[Uuid, StateTopic],
) -> GroupResult:
    draft = shard.share_draft(_known(shard, group), now)
    heartbeats.with_state(draft, topics)
    return share_result(draft, (answer(pending, EmptyReply()),))


def without_topics(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[EmptyReply],
    group: str,
    topics: Collection[Uuid],
) -> GroupResult:
    draft = shard.share_draft(_known(shard, group), now)
    heartbeats.without_topics(draft, topics)
    return share_result(draft, (answer(pending, EmptyReply()),))


def next_epoch(
    shard: GroupShard, now: Now, pending: PendingReply[ShareGroup], group: str, *, creates: bool
) -> GroupResult:
    """The group in a new epoch, for new state; refused while it has members.

    `creates`: an administrator may set the offsets of a group before it is used.
    """
    is_new = group not in shard.share_groups and not shard.is_other_than(shard.share_groups, group)
    known = heartbeats.new_group(group) if creates and is_new else _known(shard, group)
    if known.members:
        raise NonEmptyGroup("The group is not empty.")
    draft = shard.share_draft(known, now)
    draft.bump_epoch()
    return share_result(draft, (answer(pending, draft.group),))


def _known(shard: GroupShard, group: str) -> ShareGroup:
    known = shard.share_groups.get(group)
    if known is None:
        is_other = shard.is_other_than(shard.share_groups, group)
        why = "is not a share group." if is_other else "not found."
        raise GroupIdNotFound(f"Group {group} {why}")
    return known
