"""ConsumerGroupHeartbeat: a member joins, stays, gets its assignment, or leaves."""

from collections.abc import Callable

import msgspec

from penstock.coordinator.group.consumer.context import GroupContext
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.errors import (
    AssignorFailed,
    FencedMemberEpoch,
    InvalidHeartbeat,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from penstock.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupState
from penstock.coordinator.group.consumer.member import (
    LEAVE_STATIC_EPOCH,
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
    MemberState,
)
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    UnknownMemberId,
)

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
"""Epochs with a special meaning in heartbeats; `LEAVE_STATIC_EPOCH` is the third."""

RECONCILING_INTERVAL_MS = 500
"""The heartbeat interval while partitions move between members, unless the usual one is shorter."""


class ConsumerHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member's heartbeat; None, or -1: unchanged since the last one."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Assignment | None = None
    may_see: Callable[[str], bool] | None = None
    """Whether the member may know of a topic; None: of all."""

    @property
    def is_full(self) -> bool:
        """Whether every field is set. After an error a member sends all of them, and expects its
        whole assignment back.
        """
        return (
            self.rebalance_timeout_ms >= 0
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )

    @property
    def is_plain(self) -> bool:
        """Whether it changes nothing about the member, like most heartbeats."""
        return (
            self.rebalance_timeout_ms < 0
            and self.topics is None
            and self.regex is None
            and self.assignor is None
            and self.rack_id is None
        )


class ConsumerHeartbeatReply(msgspec.Struct, frozen=True):
    """The reply; `assignment` is None if it has not changed."""

    member_id: str
    epoch: int
    interval_ms: int
    assignment: Assignment | None = None


def check(request: ConsumerHeartbeat, context: GroupContext) -> None:
    """Refuse a request that is invalid in any group."""
    if not request.member_id:
        raise InvalidHeartbeat("MemberId can't be empty.")
    if request.instance_id == "":
        raise InvalidHeartbeat("InstanceId can't be empty.")
    if request.rack_id == "":
        raise InvalidHeartbeat("RackId can't be empty.")
    match request.epoch:
        case 0:
            if request.rebalance_timeout_ms < 0:
                raise InvalidHeartbeat("RebalanceTimeoutMs must be provided in first request.")
            if request.owned is None or request.owned:
                raise InvalidHeartbeat("TopicPartitions must be empty when (re-)joining.")
            if request.topics is None and request.regex is None:
                raise InvalidHeartbeat(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                    "(re-)joining."
                )
        case -2 if request.instance_id is None:
            raise InvalidHeartbeat("InstanceId can't be null.")
        case epoch if epoch < LEAVE_STATIC_EPOCH:
            raise InvalidHeartbeat("MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in context.assignors.by_name:
        offered = ", ".join(context.assignors.by_name)
        raise UnsupportedAssignor(
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {offered}."
        )


def fast_heartbeat(
    group: ConsumerGroup, request: ConsumerHeartbeat, context: GroupContext
) -> ConsumerGroupMember | None:
    """Fast path: the member with its session renewed, or None if this heartbeat changes more.

    Most heartbeats take it. It must come to the same result as `heartbeat`: the state machine in
    tests/property/test_consumer_group_machine.py compares both for every member after every step.
    """
    member = group.members.get(request.member_id)
    if (
        member is None
        or not request.is_plain
        or not _is_same_client(member, request)
        or not JOIN_EPOCH < request.epoch == member.epoch == group.target_epoch == group.epoch
        or member.state is not MemberState.STABLE
        or group.rebalance_reason
        or not context.is_seen_by(group)
    ):
        return None
    deadline_ms = context.now.steady_ms + context.settings.consumer_session_timeout_ms
    if deadline_ms < member.deadline_ms:
        return None  # the session timeout was shortened: a deadline comes nearer
    return msgspec.structs.replace(member, deadline_ms=deadline_ms)


def heartbeat(draft: ConsumerGroupDraft, request: ConsumerHeartbeat) -> ConsumerHeartbeatReply:
    """Join or stay; the reply has the member's assignment if that has changed."""
    known = _known(draft, request)
    if known is None and len(draft.group.members) >= draft.context.config.group_consumer_max_size:
        raise GroupMaxSizeReached(f"{draft.context.config.group_consumer_max_size} members")
    had = known.assigned if known is not None else NO_PARTITIONS
    epoch = draft.group.epoch
    draft.may_see = request.may_see
    draft.subscribed(known, _updated(known or ConsumerGroupMember(id=request.member_id), request))
    refresh(draft, is_change=draft.group.epoch > epoch)
    draft.reconcile(request.member_id, request.owned)
    draft.renew_session(request.member_id)
    draft.finish()
    member = draft.group.members[request.member_id]
    is_included = request.epoch == JOIN_EPOCH or request.is_full or member.assigned != had
    return ConsumerHeartbeatReply(
        member.id,
        member.epoch,
        interval_ms(draft.group, draft.context),
        member.assigned if is_included else None,
    )


def refresh(draft: ConsumerGroupDraft, *, is_change: bool) -> None:
    """Notice changed topics, and compute the target assignment if it is time.

    If the assignor fails, only a heartbeat that changes something (`is_change`) is refused.
    """
    draft.refresh_topics()
    try:
        draft.assign()
    except AssignorFailed:
        if is_change:
            raise
        # The member has changed nothing: it keeps its assignment until the assignor works.
        draft.delay_next_assignment()


def interval_ms(group: ConsumerGroup, context: GroupContext) -> int:
    usual_ms = context.settings.consumer_heartbeat_interval_ms
    if group.state is ConsumerGroupState.STABLE:
        return usual_ms
    return min(usual_ms, RECONCILING_INTERVAL_MS)


def _updated(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> ConsumerGroupMember:
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=member.topics if request.topics is None else request.topics,
        regex=member.regex if request.regex is None else request.regex or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
        assignor=request.assignor or member.assignor,
        classic=None,
    )


def _is_same_client(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> bool:
    """Whether the heartbeat is from the member's last client, and of its last protocol."""
    return (
        request.client_id == member.client_id
        and request.client_host == member.client_host
        and request.instance_id in {None, member.instance_id}
        and member.classic is None
    )


def _known(draft: ConsumerGroupDraft, request: ConsumerHeartbeat) -> ConsumerGroupMember | None:
    """The present member, after a static member has replaced its former self; None: it is new."""
    group = draft.group
    if request.epoch != JOIN_EPOCH:
        member = checked_member(group, request.member_id, request.instance_id)
        _check_epoch(member, request)
        return member
    if request.instance_id is None:
        return group.members.get(request.member_id)
    static = group.static_member(request.instance_id)
    if static is None:
        return group.members.get(request.member_id)
    if static.id != request.member_id:
        # A classic member cannot announce that it leaves temporarily: it is just replaced.
        if not static.is_away and static.classic is None:
            raise UnreleasedInstanceId(
                f"Static member {request.member_id} with instance id {request.instance_id} cannot "
                f"join the group because the instance id is owned by {static.id} member."
            )
        draft.replace(static, request.member_id)
    elif static.is_away:
        draft.put_current(msgspec.structs.replace(static, epoch=0, previous_epoch=0))
    return draft.group.members[request.member_id]


def checked_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """The member that a request claims to be from, if the claim is right."""
    if instance_id is not None:
        static = group.static_member(instance_id)
        if static is None:
            raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if static.id != member_id:
            raise FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{static.id}."
            )
        return static
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.id}.")
    return member


def _check_epoch(member: ConsumerGroupMember, request: ConsumerHeartbeat) -> None:
    if request.epoch == member.epoch:
        return
    # The previous epoch is accepted if the response with the new one was lost: then the member
    # owns nothing beyond its assignment. A static member that is away has left since.
    missed_one = request.epoch == member.previous_epoch and request.owned is not None
    if member.is_away or not missed_one or not (request.owned or NO_PARTITIONS) <= member.assigned:
        which = "greater" if request.epoch > member.epoch else "smaller"
        raise FencedMemberEpoch(
            f"The consumer group member has a {which} member epoch ({request.epoch}) than the one "
            f"known by the group coordinator ({member.epoch}). The member must abandon all its "
            "partitions and rejoin."
        )


def leave_temporarily(draft: ConsumerGroupDraft, member: ConsumerGroupMember) -> None:
    """A static member leaves; its assignment waits for it until its session ends."""
    draft.put_current(
        msgspec.structs.replace(
            member, epoch=LEAVE_STATIC_EPOCH, state=MemberState.STABLE, revoking=NO_PARTITIONS
        )
    )
    draft.set_deadlines(member.id, rebalance_deadline_ms=None)
    draft.finish()


def late_members(group: ConsumerGroup, now_ms: int) -> list[tuple[ConsumerGroupMember, str]]:
    """Members past a deadline, each with the reason for its removal."""
    found = []
    for member in group.members.values():
        if member.deadline_ms <= now_ms:
            found.append((member, f"{member.id} timed out"))
        elif member.rebalance_deadline_ms is not None and member.rebalance_deadline_ms <= now_ms:
            due = "give up its partitions" if member.classic is None else "join or sync"
            found.append((member, f"{member.id} did not {due} in time"))
    return found


def renew_deadlines(draft: ConsumerGroupDraft) -> None:
    """On a new coordinator, every member gets its full timeouts again."""
    for member in list(draft.group.members.values()):
        draft.renew_session(member.id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            draft.set_deadlines(
                member.id, rebalance_deadline_ms=draft.now_ms + member.rebalance_timeout_ms
            )
