"""A classic group while one operation on it is being decided."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember, Joined
from penstock.coordinator.group.classic.state import TRANSITIONS, ClassicGroupState
from penstock.coordinator.group.errors import UnknownMemberId
from penstock.coordinator.group.rebalance_log import Rebalance
from penstock.coordinator.result import Answer, Now, PendingReply, answer
from penstock.errors import KafkaError

T = TypeVar("T")


class ClassicGroupDraft:
    """The group as the operation changes it, and the answers that the operation gives.

    Groups are values: the shard keeps the old group until the new one is in the log.
    """

    def __init__(self, group: ClassicGroup, config: GroupConfig, now: Now) -> None:
        self.group, self.config, self.now = group, config, now
        self.now_ms = now.steady_ms
        self.answers: list[Answer] = []
        self.must_store = False
        """The group has to be written to the log."""
        self.only_renews_session = False
        """The operation only renews a session, so no deadline comes nearer."""
        self.finished: list[Rebalance] = []

    def answer(self, pending: PendingReply[T] | None, reply: T | KafkaError) -> None:
        if pending is not None:
            self.answers.append(answer(pending, reply))

    def change(self, **fields: Any) -> None:
        self.group = msgspec.structs.replace(self.group, **fields)

    def enter(self, state: ClassicGroupState) -> None:
        assert state in TRANSITIONS[self.group.state], f"{self.group.state} to {state}"
        self.change(state=state, state_since_ms=self.now.wall_ms)

    def put(self, member: ClassicGroupMember) -> ClassicGroupMember:
        self.group = self.group.with_member(member)
        return member

    def update(self, member: ClassicGroupMember, **fields: Any) -> ClassicGroupMember:
        return self.put(msgspec.structs.replace(member, **fields))

    def update_all(self, updated: Callable[[ClassicGroupMember], ClassicGroupMember]) -> None:
        """Update every member at once: one by one, each would cost a copy of all members."""
        members = self.group.members
        self.change(members={each.id: updated(each) for each in members.values()})

    def renew_session(self, member: ClassicGroupMember) -> ClassicGroupMember:
        return self.put(member.renewed(self.now_ms))

    def forget_pending_join(self, member_id: str) -> None:
        rest = {k: v for k, v in self.group.pending_join_members.items() if k != member_id}
        self.change(pending_join_members=rest)

    def remove(self, member: ClassicGroupMember) -> None:
        """Remove a member. If it awaits a reply, the error lets it join again as a new member."""
        group = self.group
        self.answer(member.awaiting_join, UnknownMemberId(f"{member.id} was removed"))
        self.answer(member.awaiting_sync, UnknownMemberId(f"{member.id} was removed"))
        members = {k: v for k, v in group.members.items() if k != member.id}
        self.change(
            members=members,
            leader=next(iter(members), None) if group.leader == member.id else group.leader,
            pending_sync_members=group.pending_sync_members - {member.id},
        )

    def joined(
        self, member: ClassicGroupMember, *, as_leader: bool, skip_assignment: bool = False
    ) -> Joined:
        """The reply to a member's join in the present generation."""
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
