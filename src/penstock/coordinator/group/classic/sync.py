"""SyncGroup: the leader submits the assignments, and every member gets its own."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.member import ClassicGroupMember, Synced
from penstock.coordinator.group.classic.rebalance import finish
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import (
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.coordinator.result import PendingReply


class GroupSync(msgspec.Struct, frozen=True, kw_only=True):
    """A member's request for its assignment; the leader's request has those of all members."""

    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = {}


def sync(draft: ClassicGroupDraft, request: GroupSync, pending: PendingReply[Synced]) -> None:
    """Answer with the member's assignment once the leader has submitted all of them."""
    group = draft.group
    member = group.checked_member(request.member_id, request.instance_id)
    group.check_generation(request.generation)
    for stated, known in (
        (request.protocol_type, group.protocol_type),
        (request.protocol, group.protocol),
    ):
        if stated is not None and stated != known:
            raise InconsistentGroupProtocol(f"{stated} is not the group's {known}")
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"{group.id} rebalances")
        case ClassicGroupState.COMPLETING_REBALANCE:
            draft.update(member, awaiting_sync=pending)
            _has_synced(draft, member)
            if member.id == group.leader:
                _assign(draft, request.assignments)
        case ClassicGroupState.STABLE:
            _has_synced(draft, member)
            draft.answer(pending, _synced(draft, member))
            draft.renew_session(member)
            draft.only_renews_session = True
        case ClassicGroupState.EMPTY | ClassicGroupState.DEAD:
            raise UnknownMemberId(f"{group.id} has no members")


def _has_synced(draft: ClassicGroupDraft, member: ClassicGroupMember) -> None:
    draft.change(pending_sync_members=draft.group.pending_sync_members - {member.id})
    if not draft.group.pending_sync_members:
        draft.change(deadline_ms=None)


def _assign(draft: ClassicGroupDraft, assignments: Mapping[str, bytes]) -> None:
    """The leader has assigned: the group is stable, and waiting members get their assignments."""
    draft.enter(ClassicGroupState.STABLE)
    draft.must_store = True
    waiting = [each for each in draft.group.members.values() if each.awaiting_sync is not None]

    def updated(member: ClassicGroupMember) -> ClassicGroupMember:
        assigned = assignments.get(member.id, b"")
        if member.awaiting_sync is None:
            return replace(member, assignment=assigned)
        return replace(member.renewed(draft.now_ms), assignment=assigned, awaiting_sync=None)

    draft.update_all(updated)
    for member in waiting:
        draft.answer(member.awaiting_sync, _synced(draft, draft.group.members[member.id]))
    finish(draft)


def _synced(draft: ClassicGroupDraft, member: ClassicGroupMember) -> Synced:
    return Synced(draft.group.protocol_type, draft.group.protocol, member.assignment)
