"""Selects the replica that a consumer should read from (KIP-392). Pure."""

from collections.abc import Iterable

from msgspec import Struct

RACK_AWARE = "RackAwareReplicaSelector"


class ReplicaView(Struct, frozen=True):
    """A replica that has the offset that a consumer requests."""

    broker: int
    rack: str | None
    end_offset: int
    behind_ms: int
    """How long ago it was caught up."""


def is_rack_aware(selector_class: str | None) -> bool:
    """Whether `replica.selector.class` names Kafka's rack-aware selector, in any package."""
    return bool(selector_class) and str(selector_class).rpartition(".")[2] == RACK_AWARE


def in_same_rack(rack: str, leader: ReplicaView, followers: Iterable[ReplicaView]) -> int | None:
    """The most caught-up follower in the consumer's rack.

    None means the leader itself: it is in that rack too, or no follower is.
    """
    if not rack or leader.rack == rack:
        return None
    near = [each for each in followers if each.rack == rack]
    if not near:
        return None
    return max(near, key=lambda each: (each.end_offset, -each.behind_ms, each.broker)).broker
