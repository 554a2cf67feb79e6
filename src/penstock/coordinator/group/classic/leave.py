"""LeaveGroup: members leave, or are removed because they timed out."""

import msgspec

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    expire_phase,
    rebalance,
)
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import UnknownMemberId
from penstock.coordinator.group.rebalance_log import with_reason
from penstock.coordinator.result import Refused
from penstock.errors import KafkaError


class LeavingMember(msgspec.Struct, frozen=True):
    """A member to remove; an administrator names a static member by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


def leave(draft: ClassicGroupDraft, leaving: tuple[LeavingMember, ...]) -> tuple[Refused, ...]:
    """Remove members; one result for each."""
    results = tuple(_leave_one(draft, each) for each in leaving)
    gone = [
        f"{each.instance_id or each.member_id}{f' ({each.reason})' if each.reason else ''}"
        for each, refused in zip(leaving, results, strict=True)
        if refused is None
    ]
    if gone:
        _rebalance_without(draft, f"{', '.join(gone)} left")
    return results


def _leave_one(draft: ClassicGroupDraft, leaving: LeavingMember) -> Refused:
    group = draft.group
    if leaving.member_id in group.pending_join_members:
        draft.forget_pending_join(leaving.member_id)
        return None
    try:
        if not leaving.member_id and leaving.instance_id is not None:
            member = group.static_member(leaving.instance_id)
            if member is None:
                raise UnknownMemberId(f"{group.id} has no static member {leaving.instance_id}")
        else:
            member = group.checked_member(leaving.member_id, leaving.instance_id)
    except KafkaError as error:
        return error
    draft.remove(member)
    return None


def _rebalance_without(draft: ClassicGroupDraft, reason: str) -> None:
    """Members were removed: rebalance among the rest, or go on with the present rebalance."""
    settled = {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}
    if draft.group.state in settled:
        rebalance(draft, reason)
        return
    if draft.group.state is ClassicGroupState.PREPARING_REBALANCE:
        draft.change(rebalance_reason=with_reason(draft.group.rebalance_reason, reason))
    if draft.group.initial_until_ms is None:
        complete_if_all_joined(draft)


def expire(draft: ClassicGroupDraft) -> None:
    """Whatever is due now: unused member ids, ended sessions, phases that took too long."""
    group, now_ms = draft.group, draft.now_ms
    unused = [each for each, at_ms in group.pending_join_members.items() if at_ms <= now_ms]
    for member_id in unused:
        draft.forget_pending_join(member_id)
    late = [each for each in group.members.values() if each.is_late(now_ms)]
    for member in late:
        draft.remove(member)
    if late:
        _rebalance_without(draft, f"{', '.join(each.id for each in late)} timed out")
    elif unused and draft.group.initial_until_ms is None:
        complete_if_all_joined(draft)
    expire_phase(draft)
