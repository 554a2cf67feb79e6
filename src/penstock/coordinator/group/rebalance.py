"""How a group gets from one generation to the next."""

from msgspec.structs import replace

from penstock.coordinator.group.rebalance_log import Rebalance, also
from penstock.coordinator.group.refusal import RebalanceInProgress
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn

QUIET_MS = 1000
"""An empty group's first join phase ends once nobody has joined for this long."""

SETTLED = (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY)
"""From these a rebalance begins; while one is being prepared it can only be completed."""


def rebalance(turn: Turn, reason: str) -> None:
    """Begin a rebalance, or go on with the one that is being prepared."""
    if turn.group.state in SETTLED:
        _prepare(turn, reason)
        return
    turn.change(rebalance_reason=also(turn.group.rebalance_reason, reason))
    if turn.group.initial_until_ms is None:
        complete_if_all_joined(turn)


def _prepare(turn: Turn, reason: str) -> None:
    group = turn.group
    for member in group.members.values():
        if member.sync is not None:
            turn.answer(member.sync, RebalanceInProgress("the group rebalances again"))
            turn.heard(turn.update(member, sync=None))
    if group.state is State.COMPLETING_REBALANCE:
        # Shares of a generation that never became stable are nobody's.
        turn.update_all(lambda each: replace(each, assignment=b""))
    began_ms = turn.now_ms
    if group.state is State.COMPLETING_REBALANCE:
        # The one before never came to its end: it goes on in this one.
        reason, began_ms = also(group.rebalance_reason, reason), group.rebalance_began_ms
    turn.change(unsynced=frozenset(), rebalance_reason=reason, rebalance_began_ms=began_ms)
    is_initial = group.state is State.EMPTY
    turn.enter(State.PREPARING_REBALANCE)
    if is_initial:
        delay_ms = turn.config.group_initial_rebalance_delay_ms
        limit_ms = max(turn.group.rebalance_timeout_ms, delay_ms)
        turn.change(initial_until_ms=turn.now_ms + limit_ms)
        extend_initial_delay(turn)
    else:
        turn.change(deadline_ms=turn.now_ms + turn.group.rebalance_timeout_ms)
        complete_if_all_joined(turn)


def extend_initial_delay(turn: Turn) -> None:
    """Somebody has joined the first rebalance: perhaps more are on their way."""
    until_ms = turn.group.initial_until_ms
    if until_ms is not None:
        quiet_ms = min(QUIET_MS, turn.config.group_initial_rebalance_delay_ms)
        turn.change(deadline_ms=min(turn.now_ms + quiet_ms, until_ms))


def complete_if_all_joined(turn: Turn) -> None:
    if turn.group.state is State.PREPARING_REBALANCE and turn.group.has_all_joined:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """End the join phase: whoever has not joined is out, the others are a new generation.

    Static members stay: their session decides, so that a restart does not move partitions.
    """
    for member in list(turn.group.members.values()):
        if member.join is None and member.instance_id is None:
            turn.remove(member)
            late = f"{member.id} did not join again in time"
            turn.change(rebalance_reason=also(turn.group.rebalance_reason, late))
    group = turn.group
    if group.members and not _elect_joined_leader(turn):
        # Only static members that are away: wait until they return or their sessions end. The
        # phase begins anew, so it must last a while, whatever the members asked for.
        lasts_ms = max(group.rebalance_timeout_ms, QUIET_MS)
        turn.change(deadline_ms=turn.now_ms + lasts_ms, initial_until_ms=None)
        return
    turn.change(generation=group.generation + 1, deadline_ms=None, initial_until_ms=None)
    if not group.members:
        turn.change(protocol=None, leader=None)
        turn.enter(State.EMPTY)
        turn.stored = True
        finish(turn)
        return
    turn.change(protocol=turn.group.elected_protocol())
    turn.enter(State.COMPLETING_REBALANCE)
    turn.change(
        unsynced=frozenset(turn.group.members),
        deadline_ms=turn.now_ms + turn.group.rebalance_timeout_ms,
    )
    waiting = turn.group.members.values()
    turn.update_all(lambda each: replace(each.heard(turn.now_ms), join=None, is_new=False))
    for member in waiting:
        is_leader = member.id == turn.group.leader
        turn.answer(member.join, turn.joined(member, as_leader=is_leader))


def _elect_joined_leader(turn: Turn) -> bool:
    """The leader must be one that has joined; False if nobody has."""
    group = turn.group
    leader = group.members.get(group.leader or "")
    if leader is None or leader.join is None:
        leader = next((each for each in group.members.values() if each.join is not None), None)
        if leader is None:
            return False
        turn.change(leader=leader.id)
    return True


def expire_phase(turn: Turn) -> None:
    """The join phase, or the wait for everybody's sync, has lasted long enough."""
    group = turn.group
    if group.deadline_ms is None or group.deadline_ms > turn.now_ms:
        return
    if group.state is State.PREPARING_REBALANCE:
        # Ids that were given out and not used must not hold the others up.
        complete_join(turn)
        return
    turn.change(deadline_ms=None)
    missing = [group.members[each] for each in sorted(group.unsynced)]
    if missing:
        for member in missing:
            turn.remove(member)
        names = ", ".join(each.id for each in missing)
        _prepare(turn, f"no sync from {names}")


def finish(turn: Turn) -> None:
    """Note how the rebalance went."""
    group = turn.group
    turn.finished.append(
        Rebalance(
            group.generation,
            group.rebalance_reason,
            len(group.members),
            turn.now_ms - group.rebalance_began_ms,
            turn.now.wall_ms,
        )
    )
    turn.change(rebalance_reason="")
