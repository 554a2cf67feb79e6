"""A member of a group of the consumer protocol."""

from enum import IntEnum
from typing import NamedTuple

import msgspec

from penstock.coordinator.group.member import ProtocolMetadata
from penstock.types import Uuid

LEFT_FOR_NOW = -2
"""The epoch of a static member that is away and is expected back; heartbeats say so with it."""


class TopicIdPartition(NamedTuple):
    """A partition of a topic by its id, so that a topic made anew is another one."""

    topic_id: Uuid
    partition: int


Share = frozenset[TopicIdPartition]
NOTHING: Share = frozenset()


class MemberState(IntEnum):
    """By Kafka's numbers, as records have them."""

    STABLE = 1
    """It has what its epoch's target gives it."""
    UNREVOKED_PARTITIONS = 2
    """It has been told to give partitions up and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 3
    """It waits for partitions that others have not given up yet."""


class ClassicTerms(msgspec.Struct, frozen=True):
    """What a member that speaks the classic protocol has told of itself when it joined."""

    session_timeout_ms: int
    protocols: tuple[ProtocolMetadata, ...]
    """In the order of its preference; it is answered in the first."""

    @property
    def protocol(self) -> ProtocolMetadata:
        return self.protocols[0]


class ConsumerMember(msgspec.Struct, frozen=True, kw_only=True):
    """What it wants, and what it has. The times are steady and not in any record."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicTerms | None = None
    """None: it speaks the consumer protocol."""

    epoch: int = 0
    previous_epoch: int = 0
    """What it may still send if the answer with its epoch was lost."""
    state: MemberState = MemberState.STABLE
    assigned: Share = NOTHING
    revoking: Share = NOTHING
    """No longer its own, but nobody else's until it says so."""

    deadline_ms: int = 0
    """It is taken for dead then, unless it is heard of before."""
    act_by_ms: int | None = None
    """It is taken out then, unless it has given up what it must; or joined again, or asked for
    its share, if it speaks the classic protocol.
    """

    @property
    def holds(self) -> Share:
        return self.assigned | self.revoking

    @property
    def is_away(self) -> bool:
        return self.epoch == LEFT_FOR_NOW

    def next_deadline_ms(self) -> int:
        return self.deadline_ms if self.act_by_ms is None else min(self.deadline_ms, self.act_by_ms)
