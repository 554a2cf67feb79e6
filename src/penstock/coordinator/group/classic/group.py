"""A classic group, as a value: each change makes a new one."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from penstock.coordinator.group.classic.embedded_protocol import CONSUMER, read_subscription
from penstock.coordinator.group.classic.member import ClassicGroupMember, ProtocolMetadata
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import (
    FencedInstanceId,
    IllegalGeneration,
    UnknownMemberId,
)
from penstock.errors import ProtocolError


class ClassicGroup(msgspec.Struct, frozen=True):
    """State, generation and members. Times are steady, except `state_since_ms`."""

    id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    """None: no member has ever joined; a simple consumer only commits offsets here."""
    protocol: str | None = None
    """The assignment strategy of this generation."""
    leader: str | None = None
    members: Mapping[str, ClassicGroupMember] = {}
    pending_join_members: Mapping[str, int] = {}
    """Member ids given out by MEMBER_ID_REQUIRED, and when each expires unless it joins."""
    pending_sync_members: frozenset[str] = frozenset()
    """Members of this generation that have not synced yet."""
    deadline_ms: int | None = None
    """When the join phase, or the wait for all syncs, ends."""
    initial_until_ms: int | None = None
    """The latest end of an empty group's first join phase; None outside of that phase."""
    state_since_ms: int | None = None
    """Wall time of the last change of state."""
    rebalance_reason: str = ""
    rebalance_began_ms: int = 0

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        members = self.members.values()
        return not self.pending_join_members and all(
            each.awaiting_join is not None for each in members
        )

    def static_member(self, instance_id: str) -> ClassicGroupMember | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def checked_member(self, member_id: str, instance_id: str | None) -> ClassicGroupMember:
        """The member that a request claims to be from, if the claim is right."""
        if instance_id is not None:
            known = self.static_member(instance_id)
            if known is None:
                raise UnknownMemberId(f"{self.id} has no static member {instance_id}")
            if known.id != member_id:
                raise FencedInstanceId(f"{instance_id} is {known.id} now, not {member_id}")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"{self.id} has no member {member_id}")
        return member

    def with_member(self, member: ClassicGroupMember) -> "ClassicGroup":
        return msgspec.structs.replace(self, members={**self.members, member.id: member})

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"{self.id} is at generation {self.generation}")

    def supports(
        self, protocol_type: str, protocols: Iterable[ProtocolMetadata], member_id: str
    ) -> bool:
        """Whether a joining member supports a strategy that all members support."""
        names = {each.name for each in protocols}
        if not self.members:
            return bool(protocol_type) and bool(names)
        if protocol_type != self.protocol_type:
            return False
        known = self.members.get(member_id)
        if known is not None and names == {each.name for each in known.protocols}:
            return True  # it was accepted with these: do not compare with a large group again
        return not names.isdisjoint(self._common())

    def _common(self) -> set[str]:
        """The strategies that every member supports."""
        known = [{each.name for each in member.protocols} for member in self.members.values()]
        return set.intersection(*known) if known else set()

    def elected_protocol(self) -> str:
        """Each member votes for its first strategy that all support; the leader breaks a tie."""
        common = self._common()
        leader_first = sorted(self.members.values(), key=lambda each: each.id != self.leader)
        votes = Counter(
            next(each.name for each in voter.protocols if each.name in common)
            for voter in leader_first
        )
        return votes.most_common(1)[0][0]

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members subscribe to; None if their subscriptions cannot be read."""
        if self.protocol_type != CONSUMER:
            return None
        try:
            read = [read_subscription(m.metadata(self.protocol)) for m in self.members.values()]
        except ProtocolError:
            return None
        return frozenset(topic for each in read for topic in each.topics)

    def next_deadline_ms(self) -> int | None:
        """The earliest time at which `expire` could change something."""
        times = [*self.pending_join_members.values()]
        # The members that `is_late` would remove at their deadlines; inlined, since every join
        # comes here.
        times += [
            m.deadline_ms
            for m in self.members.values()
            if m.is_new or (m.awaiting_join is None and m.awaiting_sync is None)
        ]
        if self.deadline_ms is not None:
            times.append(self.deadline_ms)
        return min(times, default=None)
