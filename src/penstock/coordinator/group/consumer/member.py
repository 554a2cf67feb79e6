"""A member of a group of the consumer protocol."""

from enum import IntEnum

import msgspec

from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.types import TopicIdPartition

LEAVE_STATIC_EPOCH = -2
"""The epoch of a static member that has left and is expected back; also sent to leave so."""


Assignment = frozenset[TopicIdPartition]
NO_PARTITIONS: Assignment = frozenset()


class MemberState(IntEnum):
    """Values are Kafka's numbers in records."""

    STABLE = 1
    """The member has the target assignment of its epoch."""
    UNREVOKED_PARTITIONS = 2
    """The member has to revoke partitions and has not confirmed that yet."""
    UNRELEASED_PARTITIONS = 3
    """The member waits for partitions that other members have not revoked yet."""


class ClassicMemberSettings(msgspec.Struct, frozen=True):
    """The session timeout and strategies that a member of the classic protocol joined with."""

    session_timeout_ms: int
    protocols: tuple[ProtocolMetadata, ...]
    """In order of preference; its assignment is encoded for the first."""

    @property
    def protocol(self) -> ProtocolMetadata:
        return self.protocols[0]


class ConsumerGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member's subscription and assignment. Deadlines are steady times and in no record."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMemberSettings | None = None
    """None: it uses the consumer protocol."""

    epoch: int = 0
    previous_epoch: int = 0
    """The epoch that it may still send if the response with its new epoch was lost."""
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NO_PARTITIONS
    revoking: Assignment = NO_PARTITIONS
    """Partitions that it has to revoke; no other member gets them before it confirms."""

    deadline_ms: int = 0
    """The end of its session."""
    rebalance_deadline_ms: int | None = None
    """When the member is removed unless it has revoked its partitions. A member of the classic
    protocol must have joined again, or synced.
    """

    @property
    def holds(self) -> Assignment:
        return self.assigned | self.revoking

    @property
    def is_away(self) -> bool:
        return self.epoch == LEAVE_STATIC_EPOCH

    def next_deadline_ms(self) -> int:
        return (
            self.deadline_ms
            if self.rebalance_deadline_ms is None
            else min(self.deadline_ms, self.rebalance_deadline_ms)
        )
