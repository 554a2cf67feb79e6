"""Small values that every layer shares.

Distinct integers get distinct names, so that the type checker tells an offset from an epoch.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, NewType, TypeAlias
from uuid import UUID

if TYPE_CHECKING:
    from random import Random  # callers have it; importing it costs start-up time

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes, as on the wire; a topic id is one."""

NO_UUID = Uuid(bytes(16))


def uuid_text(uuid: Uuid) -> str:
    """The id as Kafka's tools and files spell it: base64url without padding."""
    return urlsafe_b64encode(uuid).decode().rstrip("=")


def random_uuid(chance: "Random") -> UUID:
    """A version 4 UUID from `chance`, which a simulation can repeat."""
    return UUID(bytes=chance.randbytes(16), version=4)


def parse_uuid(text: str) -> Uuid:
    """The id that `text` spells; `ValueError` unless those are sixteen bytes."""
    raw = Uuid(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    # Compare the id spelled back: the decoder skips characters that it does not know.
    if len(raw) != 16 or uuid_text(raw) != text:
        raise ValueError(f"{text!r} is not an id of sixteen bytes in base64url")
    return raw


Buffer: TypeAlias = bytes | bytearray | memoryview
"""The input of codecs; slices of a memoryview are not copies."""


class TopicPartition(NamedTuple):
    """One partition, by its topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition of a topic by id: a deleted topic differs from a new one of the same name."""

    topic_id: Uuid
    partition: int


def indexes_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions by topic, in the order given, as in most requests and records."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
