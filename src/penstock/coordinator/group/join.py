"""JoinGroup: a member enters, or comes again."""

import msgspec

from penstock.config.group import GroupConfig
from penstock.coordinator.group.member import Joined, Member, ProtocolMetadata
from penstock.coordinator.group.rebalance import (
    complete_if_all_joined,
    extend_initial_delay,
    rebalance,
)
from penstock.coordinator.group.refusal import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    MemberIdRequired,
    UnknownMemberId,
)
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Ticket

NEW_MEMBER_TIMEOUT_MS = 300_000
"""How long a newcomer may wait in a join: it has no heartbeats yet that would show it dead."""


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """A request to join. `new_member_id` is for a newcomer, whose `member_id` is empty."""

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
    """The client knows MEMBER_ID_REQUIRED (v4)."""
    may_skip_assignment: bool = False
    """The client knows how to lead without assigning (v9)."""

    def bounded(self) -> "Joining":
        """The request with a rebalance timeout that lets a phase last.

        Without one, as from clients of old (v0), the session timeout stands for it.
        """
        if self.rebalance_timeout_ms > 0:
            return self
        return msgspec.structs.replace(self, rebalance_timeout_ms=self.session_timeout_ms)

    def member(self, member_id: str, ticket: Ticket[Joined]) -> Member:
        return Member(
            id=member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            join=ticket,
        )


def join(turn: Turn, asked: Joining, ticket: Ticket[Joined]) -> None:
    """Answer the ticket now, or once the rebalance that this begins or continues is through."""
    check_session_timeout(asked, turn.config)
    if not _has_room(turn, asked.member_id):
        turn.forget_pending(asked.member_id)
        turn.answer(ticket, GroupMaxSizeReached(f"{turn.config.group_max_size} members"))
        return
    if not turn.group.supports(asked.protocol_type, asked.protocols, asked.member_id):
        raise InconsistentGroupProtocol(f"{asked.protocol_type} is not what all members know")
    if not asked.member_id:
        _join_new(turn, asked, ticket)
    elif asked.member_id in turn.group.pending:
        _add(turn, asked, asked.member_id, ticket)
    else:
        _rejoin(turn, asked, ticket)


def check_session_timeout(asked: Joining, config: GroupConfig) -> None:
    least, most = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not least <= asked.session_timeout_ms <= most:
        raise InvalidSessionTimeout(f"session timeout {asked.session_timeout_ms} ms")


def _has_room(turn: Turn, member_id: str) -> bool:
    group, limit = turn.group, turn.config.group_max_size
    if len(group.members) < limit:
        return True
    known = group.members.get(member_id)
    match group.state:
        case State.EMPTY | State.DEAD:
            return True
        case State.PREPARING_REBALANCE:
            # Those who do not come back make room: only who has joined counts.
            joined = sum(each.join is not None for each in group.members.values())
            return (known is not None and known.join is not None) or joined < limit
        case State.COMPLETING_REBALANCE | State.STABLE:
            return known is not None or len(group.members) < limit


def _join_new(turn: Turn, asked: Joining, ticket: Ticket[Joined]) -> None:
    known = turn.group.static_member(asked.instance_id) if asked.instance_id is not None else None
    if known is not None:
        _replace_static(turn, asked, known, ticket)
    elif asked.needs_known_id and asked.instance_id is None:
        lapses_ms = turn.now_ms + asked.session_timeout_ms
        turn.change(pending={**turn.group.pending, asked.new_member_id: lapses_ms})
        turn.answer(ticket, MemberIdRequired(asked.new_member_id))
    else:
        _add(turn, asked, asked.new_member_id, ticket)


def _add(turn: Turn, asked: Joining, member_id: str, ticket: Ticket[Joined]) -> None:
    group = turn.group
    turn.forget_pending(member_id)
    turn.put(
        msgspec.structs.replace(
            asked.member(member_id, ticket),
            is_new=True,
            deadline_ms=turn.now_ms + NEW_MEMBER_TIMEOUT_MS,
        )
    )
    if not group.members:
        turn.change(protocol_type=asked.protocol_type)
    if group.leader is None:
        turn.change(leader=member_id)
    extend_initial_delay(turn)
    rebalance(turn, f"{member_id} joined{_told(asked)}")


def _told(asked: Joining) -> str:
    return f": {asked.reason}" if asked.reason else ""


def _rejoin(turn: Turn, asked: Joining, ticket: Ticket[Joined]) -> None:
    group = turn.group
    member = group.checked_member(asked.member_id, asked.instance_id)
    is_leader = member.id == group.leader
    is_same = member.protocols == asked.protocols
    match group.state:
        case State.COMPLETING_REBALANCE if is_same:
            # It may not have received the answer to its last join.
            turn.answer(ticket, turn.joined(member, as_leader=is_leader))
        case State.STABLE if is_same and not is_leader:
            turn.answer(ticket, turn.joined(member, as_leader=False))
        case State.STABLE | State.COMPLETING_REBALANCE | State.PREPARING_REBALANCE:
            _update(turn, member, asked, ticket)
            why = "leads and joined again" if is_leader and is_same else "changed its subscription"
            # While a rebalance is prepared everybody joins again: that is no reason for it.
            is_reason = group.state is not State.PREPARING_REBALANCE
            rebalance(turn, f"{member.id} {why}{_told(asked)}" if is_reason else "")
        case State.EMPTY | State.DEAD:
            raise UnknownMemberId(f"{group.id} has no member {member.id}")


def _update(turn: Turn, member: Member, asked: Joining, ticket: Ticket[Joined]) -> None:
    turn.update(
        member,
        protocols=asked.protocols,
        session_timeout_ms=asked.session_timeout_ms,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        join=ticket,
    )


def _replace_static(turn: Turn, asked: Joining, old: Member, ticket: Ticket[Joined]) -> None:
    """A static member came back under a new id: its share is still its own (KIP-345)."""
    group = turn.group
    fenced = FencedInstanceId(f"{old.instance_id} has joined as {asked.new_member_id}")
    turn.answer(old.join, fenced)
    turn.answer(old.sync, fenced)
    new = msgspec.structs.replace(
        asked.member(asked.new_member_id, ticket),
        assignment=old.assignment,
        deadline_ms=turn.now_ms + asked.session_timeout_ms,
    )
    members = {
        (new.id if k == old.id else k): (new if k == old.id else v)
        for k, v in group.members.items()
    }
    was_leader = group.leader == old.id
    unsynced = group.unsynced - {old.id} | ({new.id} if old.id in group.unsynced else set())
    turn.change(members=members, leader=new.id if was_leader else group.leader, unsynced=unsynced)
    if group.state is State.STABLE:
        if turn.group.elected_protocol() == group.protocol:
            _let_in(turn, new, asked, group.leader)
        else:
            rebalance(turn, f"static member {old.instance_id} came back with other strategies")
    elif group.state is State.COMPLETING_REBALANCE:
        rebalance(turn, f"static member {old.instance_id} came back")
    elif group.initial_until_ms is None:
        complete_if_all_joined(turn)


def _let_in(turn: Turn, member: Member, asked: Joining, old_leader: str | None) -> None:
    """No rebalance: the member gets its old share by the next sync.

    A client that cannot skip the assignment is told of the old leader, lest it thinks that it
    leads and shares out anew.
    """
    turn.stored = True
    leads = turn.group.leader == member.id
    if asked.may_skip_assignment:
        told = turn.joined(member, as_leader=leads, skip_assignment=leads)
    else:
        told = msgspec.structs.replace(turn.joined(member, as_leader=False), leader=old_leader)
    turn.answer(member.join, told)
    turn.update(member, join=None)
