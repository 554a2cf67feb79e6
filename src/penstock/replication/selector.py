"""Which replica a consumer should read (KIP-392). Pure."""

from collections.abc import Iterable

from msgspec import Struct

RACK_AWARE = "RackAwareReplicaSelector"


class Readable(Struct, frozen=True):
    """A replica that has the offset which a consumer wants."""

    broker: int
    rack: str | None
    end_offset: int
    behind_ms: int
    """How long ago it had caught up."""


def is_rack_aware(selector_class: str | None) -> bool:
    """Whether `replica.selector.class` names Kafka's rack-aware selector, in any package."""
    return bool(selector_class) and str(selector_class).rpartition(".")[2] == RACK_AWARE


def in_same_rack(rack: str, leader: Readable, followers: Iterable[Readable]) -> int | None:
    """The follower to read instead of the leader: the freshest one in the consumer's rack.

    None: the leader itself, since it is in that rack as well, or nobody is.
    """
    if not rack or leader.rack == rack:
        return None
    near = [each for each in followers if each.rack == rack]
    if not near:
        return None
    return max(near, key=lambda each: (each.end_offset, -each.behind_ms, each.broker)).broker
