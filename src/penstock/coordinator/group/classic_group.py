"""A group of the classic protocol, as a value: each change makes another one."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from penstock.coordinator.group.embedded import CONSUMER, read_subscription
from penstock.coordinator.group.member import Member, ProtocolMetadata
from penstock.coordinator.group.refusal import (
    FencedInstanceId,
    IllegalGeneration,
    UnknownMemberId,
)
from penstock.coordinator.group.state import State
from penstock.errors import ProtocolError


class ClassicGroup(msgspec.Struct, frozen=True):
    """Its state, generation and members. Times are steady, but for `state_since_ms`."""

    id: str
    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    """None: nobody has joined yet; a simple consumer only keeps its offsets here."""
    protocol: str | None = None
    """The assignment strategy of this generation."""
    leader: str | None = None
    members: Mapping[str, Member] = {}
    pending: Mapping[str, int] = {}
    """Ids that were given out, and when they lapse unless somebody joins with them."""
    unsynced: frozenset[str] = frozenset()
    """Members of this generation that have not asked for their share yet."""
    deadline_ms: int | None = None
    """When the join phase, or the wait for everybody's sync, ends."""
    initial_until_ms: int | None = None
    """The latest end of an empty group's first join phase; None: this is not one."""
    state_since_ms: int | None = None
    """Wall time of the last change of state."""
    rebalance_reason: str = ""
    rebalance_began_ms: int = 0

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(each.join is not None for each in self.members.values())

    def static_member(self, instance_id: str) -> Member | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def checked_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member, if it is who it says."""
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

    def with_member(self, member: Member) -> "ClassicGroup":
        return msgspec.structs.replace(self, members={**self.members, member.id: member})

    def heard(self, member: Member, now_ms: int) -> "ClassicGroup":
        return self.with_member(member.heard(now_ms))

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"{self.id} is at generation {self.generation}")

    def supports(
        self, protocol_type: str, protocols: Iterable[ProtocolMetadata], member_id: str
    ) -> bool:
        """Whoever joins must know a strategy that everybody knows."""
        names = {each.name for each in protocols}
        if not self.members:
            return bool(protocol_type) and bool(names)
        if protocol_type != self.protocol_type:
            return False
        known = self.members.get(member_id)
        if known is not None and names == {each.name for each in known.protocols}:
            return True  # it was let in with these: a large group need not be asked again
        return not names.isdisjoint(self._common())

    def _common(self) -> set[str]:
        """The strategies that every member knows."""
        known = [{each.name for each in member.protocols} for member in self.members.values()]
        return set.intersection(*known) if known else set()

    def elected_protocol(self) -> str:
        """Each member votes for the first of its own that all know; the leader breaks a tie."""
        common = self._common()
        leader_first = sorted(self.members.values(), key=lambda each: each.id != self.leader)
        votes = Counter(
            next(each.name for each in voter.protocols if each.name in common)
            for voter in leader_first
        )
        return votes.most_common(1)[0][0]

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members read; None where nobody can tell."""
        if self.protocol_type != CONSUMER:
            return None
        try:
            read = [read_subscription(m.metadata(self.protocol)) for m in self.members.values()]
        except ProtocolError:
            return None
        return frozenset(topic for each in read for topic in each.topics)

    def is_subscribed(self, topic: str) -> bool:
        """If nobody can tell, a consumer group is taken to be."""
        topics = self.subscribed_topics
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    def next_deadline_ms(self) -> int | None:
        """The earliest time at which `expire` could change something."""
        times = [*self.pending.values()]
        # Who will be late at its deadline, as `is_late` has it: spelled out, since each join asks.
        times += [
            m.deadline_ms
            for m in self.members.values()
            if m.is_new or (m.join is None and m.sync is None)
        ]
        if self.deadline_ms is not None:
            times.append(self.deadline_ms)
        return min(times, default=None)
