"""Small values that every layer shares.

Distinct integers get distinct names, so that the type checker tells an offset from an epoch.
"""

from typing import NamedTuple, NewType, TypeAlias

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes, as on the wire; a topic id is one."""

NO_UUID = Uuid(bytes(16))

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What the codecs read; slices of a memoryview are not copies."""


class TopicPartition(NamedTuple):
    """One partition, by its topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
