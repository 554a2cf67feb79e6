"""A member of a share group, and the topics whose partitions have state."""

from typing import NamedTuple

import msgspec

from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment


class StateTopic(NamedTuple):
    """The partitions of a topic that have state with the share coordinator."""

    name: str
    partitions: frozenset[int]


class ShareGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member's subscription and assignment. The deadline is a steady time and in no record."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()

    epoch: int = 0
    previous_epoch: int = 0
    """The epoch that it may still send if the response with its new epoch was lost."""
    assigned: Assignment = NO_PARTITIONS

    deadline_ms: int = 0
    """The end of its session."""
