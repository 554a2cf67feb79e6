"""One operation on one group, while it is being decided."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.member import Joined, Member
from penstock.coordinator.group.rebalance_log import Rebalance
from penstock.coordinator.group.refusal import UnknownMemberId
from penstock.coordinator.group.state import TRANSITIONS, State
from penstock.coordinator.outcome import Answer, Now, Ticket, answer
from penstock.errors import KafkaError

T = TypeVar("T")


class Turn:
    """The group as it becomes, who is answered what, and whether the group is to be written.

    Groups are values: whoever began the turn keeps the old one until the new one is in the log.
    """

    def __init__(self, group: ClassicGroup, config: GroupConfig, now: Now) -> None:
        self.group, self.config, self.now = group, config, now
        self.now_ms = now.steady_ms
        self.answers: list[Answer] = []
        self.stored = False
        self.only_heard = False
        """No deadline has come nearer."""
        self.finished: list[Rebalance] = []

    def answer(self, ticket: Ticket[T] | None, reply: T | KafkaError) -> None:
        if ticket is not None:
            self.answers.append(answer(ticket, reply))

    def change(self, **fields: Any) -> None:
        self.group = msgspec.structs.replace(self.group, **fields)

    def enter(self, state: State) -> None:
        assert state in TRANSITIONS[self.group.state], f"{self.group.state} to {state}"
        self.change(state=state, state_since_ms=self.now.wall_ms)

    def put(self, member: Member) -> Member:
        self.group = self.group.with_member(member)
        return member

    def update(self, member: Member, **fields: Any) -> Member:
        return self.put(msgspec.structs.replace(member, **fields))

    def update_all(self, updated: Callable[[Member], Member]) -> None:
        """Every member at once: one by one, each would cost a copy of all."""
        members = self.group.members
        self.change(members={each.id: updated(each) for each in members.values()})

    def heard(self, member: Member) -> Member:
        return self.put(member.heard(self.now_ms))

    def forget_pending(self, member_id: str) -> None:
        self.change(pending={k: v for k, v in self.group.pending.items() if k != member_id})

    def remove(self, member: Member) -> None:
        """Take a member out. If it still waits it may come back as a new one."""
        group = self.group
        self.answer(member.join, UnknownMemberId(f"{member.id} was removed"))
        self.answer(member.sync, UnknownMemberId(f"{member.id} was removed"))
        members = {k: v for k, v in group.members.items() if k != member.id}
        leader = next(iter(members), None) if group.leader == member.id else group.leader
        self.change(members=members, leader=leader, unsynced=group.unsynced - {member.id})

    def joined(self, member: Member, *, as_leader: bool, skip_assignment: bool = False) -> Joined:
        """What a member is told of the present generation."""
        group = self.group
        return Joined(
            member_id=member.id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            leader=group.leader,
            members=tuple(group.members.values()) if as_leader else (),
            skip_assignment=skip_assignment,
        )
