"""The input and the output of an assignor for each member."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.types import Uuid


class Subscriber(msgspec.Struct, frozen=True):
    """A member's subscribed topics, and the partitions of its last target assignment."""

    topics: frozenset[Uuid]
    held: Assignment = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None


GroupAssignment: TypeAlias = Mapping[str, Assignment]


def in_order(subscribers: Mapping[str, Subscriber]) -> list[str]:
    """Member ids in a stable order: static members first, by instance id."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = subscribers[member_id].instance_id
        return instance_id is None, instance_id or member_id

    return sorted(subscribers, key=rank)
