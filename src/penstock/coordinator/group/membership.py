"""What members do in a generation: SyncGroup, Heartbeat, LeaveGroup; and what becomes of those
who do nothing.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.member import Member, Synced
from penstock.coordinator.group.rebalance import (
    complete_if_all_joined,
    expire_phase,
    finish,
    rebalance,
)
from penstock.coordinator.group.rebalance_log import also
from penstock.coordinator.group.refusal import (
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Ticket
from penstock.errors import KafkaError


class Syncing(msgspec.Struct, frozen=True, kw_only=True):
    """A member that asks for its share; the leader's request has everybody's."""

    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = {}


class Leaving(msgspec.Struct, frozen=True):
    """One that leaves; an administrator names a static member by its instance alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


def sync(turn: Turn, asked: Syncing, ticket: Ticket[Synced]) -> None:
    """Answer with the member's share once the leader has handed all of them in."""
    group = turn.group
    member = group.checked_member(asked.member_id, asked.instance_id)
    group.check_generation(asked.generation)
    for told, known in (
        (asked.protocol_type, group.protocol_type),
        (asked.protocol, group.protocol),
    ):
        if told is not None and told != known:
            raise InconsistentGroupProtocol(f"{told} is not the group's {known}")
    match group.state:
        case State.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"{group.id} rebalances")
        case State.COMPLETING_REBALANCE:
            turn.update(member, sync=ticket)
            _synced(turn, member)
            if member.id == group.leader:
                _share_out(turn, asked.assignments)
        case State.STABLE:
            _synced(turn, member)
            turn.answer(ticket, share(turn, member))
            turn.heard(member)
            turn.only_heard = True
        case State.EMPTY | State.DEAD:
            raise UnknownMemberId(f"{group.id} has no members")


def _synced(turn: Turn, member: Member) -> None:
    turn.change(unsynced=turn.group.unsynced - {member.id})
    if not turn.group.unsynced:
        turn.change(deadline_ms=None)


def _share_out(turn: Turn, assignments: Mapping[str, bytes]) -> None:
    """The leader's word: the group is stable, and each that waits gets its share."""
    turn.enter(State.STABLE)
    turn.stored = True
    waiting = [each for each in turn.group.members.values() if each.sync is not None]

    def updated(member: Member) -> Member:
        given = assignments.get(member.id, b"")
        if member.sync is None:
            return replace(member, assignment=given)
        return replace(member.heard(turn.now_ms), assignment=given, sync=None)

    turn.update_all(updated)
    for member in waiting:
        turn.answer(member.sync, share(turn, turn.group.members[member.id]))
    finish(turn)


def share(turn: Turn, member: Member) -> Synced:
    return Synced(turn.group.protocol_type, turn.group.protocol, member.assignment)


def told_by_heartbeat(group: ClassicGroup) -> KafkaError | None:
    """What tells a member that lives to join again."""
    if group.state is State.PREPARING_REBALANCE:
        return RebalanceInProgress(f"{group.id} rebalances")
    return None


def leave(turn: Turn, leaving: tuple[Leaving, ...]) -> tuple[KafkaError | None, ...]:
    """Take members out; one answer for each."""
    results = tuple(_leave_one(turn, each) for each in leaving)
    gone = [
        f"{each.instance_id or each.member_id}{f' ({each.reason})' if each.reason else ''}"
        for each, refused in zip(leaving, results, strict=True)
        if refused is None
    ]
    if gone:
        _without(turn, f"{', '.join(gone)} left")
    return results


def _leave_one(turn: Turn, leaving: Leaving) -> KafkaError | None:
    group = turn.group
    if leaving.member_id in group.pending:
        turn.forget_pending(leaving.member_id)
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
    turn.remove(member)
    return None


def _without(turn: Turn, reason: str) -> None:
    """Somebody is gone: those who stay share anew."""
    if turn.group.state in {State.STABLE, State.COMPLETING_REBALANCE}:
        rebalance(turn, reason)
        return
    if turn.group.state is State.PREPARING_REBALANCE:
        turn.change(rebalance_reason=also(turn.group.rebalance_reason, reason))
    if turn.group.initial_until_ms is None:
        complete_if_all_joined(turn)


def expire(turn: Turn) -> None:
    """Whatever is due at this time: lapsed ids, dead members, phases that took too long."""
    group, now_ms = turn.group, turn.now_ms
    lapsed = [each for each, at_ms in group.pending.items() if at_ms <= now_ms]
    for member_id in lapsed:
        turn.forget_pending(member_id)
    late = [each for each in group.members.values() if each.is_late(now_ms)]
    for member in late:
        turn.remove(member)
    if late:
        _without(turn, f"{', '.join(each.id for each in late)} timed out")
    elif lapsed and turn.group.initial_until_ms is None:
        complete_if_all_joined(turn)
    expire_phase(turn)
