"""JoinGroup: a member joins, or joins again."""

import msgspec

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.member import ClassicGroupMember, Joined, ProtocolMetadata
from penstock.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    extend_initial_delay,
    rebalance,
)
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    MemberIdRequired,
    UnknownMemberId,
)
from penstock.coordinator.result import PendingReply

NEW_MEMBER_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first join: it sends no heartbeats yet."""

MAX_PENDING_JOIN_MEMBERS = 10_000
"""The most member ids of one group that are given out and not used yet.

A client that requests ids and never joins would slow down every join of the group. The oldest id is
dropped, and its owner requests another.
"""


class GroupJoin(msgspec.Struct, frozen=True, kw_only=True):
    """A request to join. A new member has an empty `member_id` and gets `new_member_id`."""

    member_id: str = ""
    new_member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[ProtocolMetadata, ...]
    reason: str = ""
    needs_known_id: bool = False
    """The client understands MEMBER_ID_REQUIRED (v4)."""
    may_skip_assignment: bool = False
    """The client understands `skip_assignment` (v9)."""

    def bounded(self) -> "GroupJoin":
        """The request with a positive rebalance timeout: by default, the session timeout.

        Old clients (v0) send none.
        """
        if self.rebalance_timeout_ms > 0:
            return self
        return msgspec.structs.replace(self, rebalance_timeout_ms=self.session_timeout_ms)

    def member(self, member_id: str, pending: PendingReply[Joined]) -> ClassicGroupMember:
        return ClassicGroupMember(
            id=member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            awaiting_join=pending,
        )


def join(draft: ClassicGroupDraft, request: GroupJoin, pending: PendingReply[Joined]) -> None:
    """Answer now, or when the rebalance that this join begins or continues ends."""
    check_session_timeout(request, draft.config)
    if not _has_room(draft, request.member_id):
        draft.forget_pending_join(request.member_id)
        draft.answer(pending, GroupMaxSizeReached(f"{draft.config.group_max_size} members"))
        return
    if not draft.group.supports(request.protocol_type, request.protocols, request.member_id):
        raise InconsistentGroupProtocol(
            f"{request.protocol_type}: no strategy that all members support"
        )
    if not request.member_id:
        _join_new(draft, request, pending)
    elif request.member_id in draft.group.pending_join_members:
        _add(draft, request, request.member_id, pending)
    else:
        _rejoin(draft, request, pending)


def check_session_timeout(request: GroupJoin, config: GroupConfig) -> None:
    least, most = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not least <= request.session_timeout_ms <= most:
        raise InvalidSessionTimeout(
            f"session timeout {request.session_timeout_ms} ms is outside {least} to {most} ms"
        )


def _has_room(draft: ClassicGroupDraft, member_id: str) -> bool:
    group, limit = draft.group, draft.config.group_max_size
    if len(group.members) < limit:
        return True
    known = group.members.get(member_id)
    match group.state:
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            return True
        case ClassicGroupState.PREPARING_REBALANCE:
            # Members that do not join again will be removed: count only those that have joined.
            joined = sum(each.awaiting_join is not None for each in group.members.values())
            return (known is not None and known.awaiting_join is not None) or joined < limit
        case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
            return known is not None or len(group.members) < limit


def _join_new(draft: ClassicGroupDraft, request: GroupJoin, pending: PendingReply[Joined]) -> None:
    instance_id = request.instance_id
    known = None if instance_id is None else draft.group.static_member(instance_id)
    if known is not None:
        _replace_static(draft, request, known, pending)
    elif request.needs_known_id and instance_id is None:
        expires_ms = draft.now_ms + request.session_timeout_ms
        given_out = {**draft.group.pending_join_members, request.new_member_id: expires_ms}
        if len(given_out) > MAX_PENDING_JOIN_MEMBERS:
            del given_out[next(iter(given_out))]
        draft.change(pending_join_members=given_out)
        draft.answer(pending, MemberIdRequired(request.new_member_id))
    else:
        _add(draft, request, request.new_member_id, pending)


def _add(
    draft: ClassicGroupDraft, request: GroupJoin, member_id: str, pending: PendingReply[Joined]
) -> None:
    group = draft.group
    draft.forget_pending_join(member_id)
    draft.put(
        msgspec.structs.replace(
            request.member(member_id, pending),
            is_new=True,
            deadline_ms=draft.now_ms + NEW_MEMBER_TIMEOUT_MS,
        )
    )
    if not group.members:
        draft.change(protocol_type=request.protocol_type)
    if group.leader is None:
        draft.change(leader=member_id)
    extend_initial_delay(draft)
    rebalance(draft, f"{member_id} joined{_stated_reason(request)}")


def _stated_reason(request: GroupJoin) -> str:
    return f": {request.reason}" if request.reason else ""


def _rejoin(draft: ClassicGroupDraft, request: GroupJoin, pending: PendingReply[Joined]) -> None:
    group = draft.group
    member = group.checked_member(request.member_id, request.instance_id)
    is_leader = member.id == group.leader
    is_unchanged = member.protocols == request.protocols
    match group.state:
        case ClassicGroupState.COMPLETING_REBALANCE if is_unchanged:
            # It may have missed the response to its last join.
            draft.answer(pending, draft.joined(member, as_leader=is_leader))
        case ClassicGroupState.STABLE if is_unchanged and not is_leader:
            draft.answer(pending, draft.joined(member, as_leader=False))
        case (
            ClassicGroupState.STABLE
            | ClassicGroupState.COMPLETING_REBALANCE
            | ClassicGroupState.PREPARING_REBALANCE
        ):
            _update(draft, member, request, pending)
            leads = is_leader and is_unchanged
            why = "leads and joined again" if leads else "changed its subscription"
            # While a rebalance is being prepared every member joins again: that is not a reason.
            is_reason = group.state is not ClassicGroupState.PREPARING_REBALANCE
            rebalance(draft, f"{member.id} {why}{_stated_reason(request)}" if is_reason else "")
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise UnknownMemberId(f"{group.id} has no member {member.id}")


def _update(
    draft: ClassicGroupDraft,
    member: ClassicGroupMember,
    request: GroupJoin,
    pending: PendingReply[Joined],
) -> None:
    draft.update(
        member,
        protocols=request.protocols,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        awaiting_join=pending,
    )


def _replace_static(
    draft: ClassicGroupDraft,
    request: GroupJoin,
    old: ClassicGroupMember,
    pending: PendingReply[Joined],
) -> None:
    """A static member came back under a new id: it keeps its assignment (KIP-345)."""
    group = draft.group
    fenced = FencedInstanceId(f"{old.instance_id} has joined as {request.new_member_id}")
    draft.answer(old.awaiting_join, fenced)
    draft.answer(old.awaiting_sync, fenced)
    new = msgspec.structs.replace(
        request.member(request.new_member_id, pending),
        assignment=old.assignment,
        deadline_ms=draft.now_ms + request.session_timeout_ms,
    )
    members = {
        (new.id if k == old.id else k): (new if k == old.id else v)
        for k, v in group.members.items()
    }
    was_leader = group.leader == old.id
    pending_sync = group.pending_sync_members
    if old.id in pending_sync:
        pending_sync = pending_sync - {old.id} | {new.id}
    draft.change(
        members=members,
        leader=new.id if was_leader else group.leader,
        pending_sync_members=pending_sync,
    )
    if group.state is ClassicGroupState.STABLE:
        if draft.group.elected_protocol() == group.protocol:
            _admit(draft, new, request, group.leader)
        else:
            rebalance(draft, f"static member {old.instance_id} came back with other strategies")
    elif group.state is ClassicGroupState.COMPLETING_REBALANCE:
        rebalance(draft, f"static member {old.instance_id} came back")
    elif group.initial_until_ms is None:
        complete_if_all_joined(draft)


def _admit(
    draft: ClassicGroupDraft, member: ClassicGroupMember, request: GroupJoin, old_leader: str | None
) -> None:
    """Admit a static member without a rebalance: it gets its old assignment by its next sync.

    A client that cannot skip the assignment gets the old leader's id. Otherwise it would think
    that it leads, and assign the partitions again.
    """
    draft.must_store = True
    leads = draft.group.leader == member.id
    if request.may_skip_assignment:
        joined = draft.joined(member, as_leader=leads, skip_assignment=leads)
    else:
        joined = msgspec.structs.replace(draft.joined(member, as_leader=False), leader=old_leader)
    draft.answer(member.awaiting_join, joined)
    draft.update(member, awaiting_join=None)
