"""Operations of members: join, sync, heartbeat and leave, in either protocol."""

from penstock.coordinator.group.classic import join as joins
from penstock.coordinator.group.classic import leave as leaves
from penstock.coordinator.group.classic import sync as syncs
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, Synced
from penstock.coordinator.group.classic.rebalance import rebalance_in_progress
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer import heartbeat as heartbeats
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.group import ConsumerGroup, new_group
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from penstock.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from penstock.coordinator.group.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    UnknownMemberId,
)
from penstock.coordinator.group.migration import classic_protocol
from penstock.coordinator.group.migration import upgrade as upgrades
from penstock.coordinator.group.migration.downgrade import remove_members
from penstock.coordinator.group.records import ClassicGroupRecord
from penstock.coordinator.group.result import (
    GroupResult,
    classic_result,
    consumer_result,
    consumer_session_renewed,
    session_renewed,
    streams_result,
)
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.migration import classic_protocol as streams_protocol
from penstock.coordinator.result import (
    Answer,
    CoordinatorResult,
    EmptyReply,
    Now,
    PendingReply,
    Refused,
    answer,
)


def join(
    shard: GroupShard, now: Now, pending: PendingReply[Joined], group: str, request: GroupJoin
) -> GroupResult:
    request = request.bounded()
    if group in shard.share_groups:
        raise InconsistentGroupProtocol(f"{group} is a share group")
    streams, other = shard.streams_groups.get(group), shard.consumer_groups.get(group)
    if streams is not None and streams.members:
        streams_draft = shard.streams_draft(streams, now)
        joined = streams_protocol.join(streams_draft, request, shard.config)
        return streams_result(streams_draft, (answer(pending, joined),))
    if other is not None and other.members:
        consumer_draft = shard.consumer_draft(other, now)
        joined = classic_protocol.join(consumer_draft, request)
        return consumer_result(consumer_draft, answers=(answer(pending, joined),))
    known = shard.classic_groups.get(group)
    if known is None and request.member_id:
        raise UnknownMemberId(f"there is no group {group}")
    draft = shard.classic_draft(known or ClassicGroup(group), now)
    draft.must_store = known is None
    joins.join(draft, request, pending)
    replaced = other or streams
    return classic_result(draft, tuple(replaced.tombstones()) if replaced is not None else ())


def sync(
    shard: GroupShard, now: Now, pending: PendingReply[Synced], group: str, request: GroupSync
) -> GroupResult:
    known = _existing_group(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_draft = shard.consumer_draft(known, now)
        synced = classic_protocol.sync(consumer_draft, request)
        return consumer_result(consumer_draft, answers=(answer(pending, synced),))
    if isinstance(known, StreamsGroup):
        streams_draft = shard.streams_draft(known, now)
        synced = streams_protocol.sync(streams_draft, request)
        return streams_result(streams_draft, (answer(pending, synced),))
    draft = shard.classic_draft(known, now)
    syncs.sync(draft, request, pending)
    return classic_result(draft)


def heartbeat(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[EmptyReply],
    group: str,
    member_id: str,
    instance_id: str | None,
    generation: int,
) -> GroupResult:
    known = _existing_group(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_draft = shard.consumer_draft(known, now)
        refused = classic_protocol.heartbeat(consumer_draft, member_id, instance_id, generation)
        return consumer_result(consumer_draft, answers=(answer(pending, refused or EmptyReply()),))
    if isinstance(known, StreamsGroup):
        streams_draft = shard.streams_draft(known, now)
        refused = streams_protocol.heartbeat(streams_draft, member_id, generation)
        return streams_result(streams_draft, (answer(pending, refused or EmptyReply()),))
    member = known.checked_member(member_id, instance_id)
    known.check_generation(generation)
    reply = answer(pending, rebalance_in_progress(known) or EmptyReply())
    soft_state = session_renewed(known, member, now.steady_ms)
    return CoordinatorResult(answers=(reply,), soft_state=soft_state)


def leave(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[tuple[Refused, ...]],
    group: str,
    leaving: tuple[LeavingMember, ...],
) -> GroupResult:
    known = _existing_group(shard, group)
    if isinstance(known, ConsumerGroup):
        consumer_draft = shard.consumer_draft(known, now)
        left = classic_protocol.leave(consumer_draft, leaving)
        return consumer_result(consumer_draft, answers=(answer(pending, left),))
    if isinstance(known, StreamsGroup):
        streams_draft = shard.streams_draft(known, now)
        gone = streams_protocol.leave(streams_draft, leaving)
        return streams_result(streams_draft, (answer(pending, gone),))
    draft = shard.classic_draft(known, now)
    draft.answer(pending, leaves.leave(draft, leaving))
    return classic_result(draft)


def _existing_group(shard: GroupShard, group: str) -> ClassicGroup | ConsumerGroup | StreamsGroup:
    known = (
        shard.consumer_groups.get(group)
        or shard.classic_groups.get(group)
        or shard.streams_groups.get(group)
    )
    if known is None:
        raise UnknownMemberId(f"there is no group {group}")
    return known


def _not_found(shard: GroupShard, group: str, request: ConsumerHeartbeat) -> str:
    if shard.is_other_than(shard.consumer_groups, group):
        return f"Group {group} is not a consumer group."
    return (
        f"Group {group} not found." if request.epoch < 0 else f"Consumer group {group} not found."
    )


def consumer_heartbeat(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[ConsumerHeartbeatReply],
    group: str,
    request: ConsumerHeartbeat,
) -> GroupResult:
    known = shard.consumer_groups.get(group)
    if known is not None:
        context = shard.context(group, now)
        member = heartbeats.fast_heartbeat(known, request, context)
        if member is not None:
            interval_ms = heartbeats.interval_ms(known, context)
            reply = ConsumerHeartbeatReply(member.id, member.epoch, interval_ms)
            return CoordinatorResult(
                answers=(answer(pending, reply),),
                soft_state=consumer_session_renewed(known, member, now),
            )
    draft = shard.consumer_draft(known or new_group(group), now)
    heartbeats.check(request, draft.context)
    is_other = group in shard.share_groups or group in shard.streams_groups
    if is_other or (known is None and request.epoch != heartbeats.JOIN_EPOCH):
        raise GroupIdNotFound(_not_found(shard, group, request))
    classic = shard.classic_groups.get(group)
    rejoins = _upgraded(draft, classic) if classic is not None else ()
    replaced = () if classic is None else (ClassicGroupRecord(group, None),)
    reply = _heartbeat(draft, request)
    return consumer_result(draft, replaced, (*rejoins, answer(pending, reply)))


def _upgraded(draft: ConsumerGroupDraft, classic: ClassicGroup) -> tuple[Answer, ...]:
    """Replace a classic group by one of the consumer protocol; its offsets stay.

    Returns the answers to its waiting members, which have to join again.
    """
    if classic.state is ClassicGroupState.EMPTY:
        return ()
    upgrades.check(classic, draft.context.config)
    return upgrades.upgrade(draft, classic)


def _heartbeat(draft: ConsumerGroupDraft, request: ConsumerHeartbeat) -> ConsumerHeartbeatReply:
    if request.epoch >= heartbeats.JOIN_EPOCH:
        return heartbeats.heartbeat(draft, request)
    member = heartbeats.checked_member(draft.group, request.member_id, request.instance_id)
    if request.epoch == LEAVE_STATIC_EPOCH:
        heartbeats.leave_temporarily(draft, member)
    else:
        remove_members(draft, [member], f"{member.id} left")
    return ConsumerHeartbeatReply(member.id, request.epoch, 0)
