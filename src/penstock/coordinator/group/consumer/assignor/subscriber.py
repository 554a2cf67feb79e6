"""What an assignor knows of a member, and what it answers."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.consumer.member import NOTHING, Share
from penstock.types import Uuid


class Subscriber(msgspec.Struct, frozen=True):
    """A member's wishes, and what it had by the last assignment."""

    topics: frozenset[Uuid]
    held: Share = NOTHING
    instance_id: str | None = None
    rack_id: str | None = None


Shares: TypeAlias = Mapping[str, Share]


def in_order(subscribers: Mapping[str, Subscriber]) -> list[str]:
    """Static members first, by the name that they keep over restarts."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = subscribers[member_id].instance_id
        return instance_id is None, instance_id or member_id

    return sorted(subscribers, key=rank)
