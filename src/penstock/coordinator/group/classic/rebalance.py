"""A rebalance of a classic group: from one generation to the next."""

from msgspec.structs import replace

from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import RebalanceInProgress
from penstock.coordinator.group.rebalance_log import Rebalance, with_reason

QUIET_MS = 1000
"""An empty group's first join phase ends once no member has joined for this long. It does not
wait for the whole `group.initial.rebalance.delay.ms`."""

SETTLED = {
    ClassicGroupState.STABLE,
    ClassicGroupState.COMPLETING_REBALANCE,
    ClassicGroupState.EMPTY,
}
"""A rebalance begins from these states; one that is being prepared can only be completed."""


def rebalance(draft: ClassicGroupDraft, reason: str) -> None:
    """Begin a rebalance, or go on with the one that is being prepared."""
    if draft.group.state in SETTLED:
        _prepare(draft, reason)
        return
    draft.change(rebalance_reason=with_reason(draft.group.rebalance_reason, reason))
    if draft.group.initial_until_ms is None:
        complete_if_all_joined(draft)


def rebalance_in_progress(group: ClassicGroup) -> RebalanceInProgress | None:
    """The error of a heartbeat that tells the member to join again, if it has to."""
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return RebalanceInProgress(f"{group.id} rebalances")
    return None


def _prepare(draft: ClassicGroupDraft, reason: str) -> None:
    group = draft.group
    for member in group.members.values():
        if member.awaiting_sync is not None:
            again = RebalanceInProgress("the group rebalances again")
            draft.answer(member.awaiting_sync, again)
            draft.renew_session(draft.update(member, awaiting_sync=None))
    began_ms = draft.now_ms
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # Assignments of a generation that never became stable are void.
        draft.update_all(lambda each: replace(each, assignment=b""))
        # The previous rebalance did not finish: it goes on in this one.
        reason, began_ms = with_reason(group.rebalance_reason, reason), group.rebalance_began_ms
    draft.change(
        pending_sync_members=frozenset(), rebalance_reason=reason, rebalance_began_ms=began_ms
    )
    is_initial = group.state is ClassicGroupState.EMPTY
    draft.enter(ClassicGroupState.PREPARING_REBALANCE)
    if is_initial:
        delay_ms = draft.config.group_initial_rebalance_delay_ms
        limit_ms = max(draft.group.rebalance_timeout_ms, delay_ms)
        draft.change(initial_until_ms=draft.now_ms + limit_ms)
        extend_initial_delay(draft)
    else:
        draft.change(deadline_ms=draft.now_ms + draft.group.rebalance_timeout_ms)
        complete_if_all_joined(draft)


def extend_initial_delay(draft: ClassicGroupDraft) -> None:
    """A member has joined the first rebalance: wait for more."""
    until_ms = draft.group.initial_until_ms
    if until_ms is not None:
        quiet_ms = min(QUIET_MS, draft.config.group_initial_rebalance_delay_ms)
        draft.change(deadline_ms=min(draft.now_ms + quiet_ms, until_ms))


def complete_if_all_joined(draft: ClassicGroupDraft) -> None:
    is_preparing = draft.group.state is ClassicGroupState.PREPARING_REBALANCE
    if is_preparing and draft.group.has_all_joined:
        complete_join(draft)


def complete_join(draft: ClassicGroupDraft) -> None:
    """End the join phase: members that have not joined are removed; the rest form a generation.

    Static members stay until their sessions end, so that a restart does not move partitions.
    """
    for member in list(draft.group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            draft.remove(member)
            late = f"{member.id} did not join again in time"
            draft.change(rebalance_reason=with_reason(draft.group.rebalance_reason, late))
    group = draft.group
    if group.members and not _elect_joined_leader(draft):
        # Only static members that are away: wait until they return or their sessions end. The
        # phase begins again, so it must last a while, whatever timeout the members asked for.
        lasts_ms = max(group.rebalance_timeout_ms, QUIET_MS)
        draft.change(deadline_ms=draft.now_ms + lasts_ms, initial_until_ms=None)
        return
    draft.change(generation=group.generation + 1, deadline_ms=None, initial_until_ms=None)
    if not group.members:
        draft.change(protocol=None, leader=None)
        draft.enter(ClassicGroupState.EMPTY)
        draft.must_store = True
        finish(draft)
        return
    draft.change(protocol=draft.group.elected_protocol())
    draft.enter(ClassicGroupState.COMPLETING_REBALANCE)
    draft.change(
        pending_sync_members=frozenset(draft.group.members),
        deadline_ms=draft.now_ms + draft.group.rebalance_timeout_ms,
    )
    waiting = draft.group.members.values()
    draft.update_all(
        lambda each: replace(each.renewed(draft.now_ms), awaiting_join=None, is_new=False)
    )
    for member in waiting:
        is_leader = member.id == draft.group.leader
        draft.answer(member.awaiting_join, draft.joined(member, as_leader=is_leader))


def _elect_joined_leader(draft: ClassicGroupDraft) -> bool:
    """Make sure that the leader has joined; False if no member has."""
    group = draft.group
    leader = group.members.get(group.leader or "")
    if leader is None or leader.awaiting_join is None:
        joined = (each for each in group.members.values() if each.awaiting_join is not None)
        leader = next(joined, None)
        if leader is None:
            return False
        draft.change(leader=leader.id)
    return True


def expire_phase(draft: ClassicGroupDraft) -> None:
    """End a join phase, or a wait for syncs, that has lasted long enough."""
    group = draft.group
    if group.deadline_ms is None or group.deadline_ms > draft.now_ms:
        return
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        # Member ids that were given out and not used must not delay the others.
        complete_join(draft)
        return
    draft.change(deadline_ms=None)
    missing = [group.members[each] for each in sorted(group.pending_sync_members)]
    if missing:
        for member in missing:
            draft.remove(member)
        names = ", ".join(each.id for each in missing)
        _prepare(draft, f"no sync from {names}")


def finish(draft: ClassicGroupDraft) -> None:
    """Log the rebalance that has ended."""
    group = draft.group
    draft.finished.append(
        Rebalance(
            group.generation,
            group.rebalance_reason,
            len(group.members),
            draft.now_ms - group.rebalance_began_ms,
            draft.now.wall_ms,
        )
    )
    draft.change(rebalance_reason="")
