"""Records as applications see them: before they are sent, once written, and as read."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeAlias

from confluent_kafka import Message

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:  # Python 3.11 has no defaults of type variables
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

Header: TypeAlias = tuple[str, bytes | None]
PartitionId: TypeAlias = tuple[str, int]
"""Topic and partition."""


class TimestampType(IntEnum):
    """Whose clock a record's timestamp comes from (`message.timestamp.type`)."""

    NOT_AVAILABLE = 0
    CREATE_TIME = 1
    LOG_APPEND_TIME = 2


@dataclass(frozen=True)  # with slots, Python 3.11 refuses `Outgoing[bytes, Order](...)`
class Outgoing(Generic[K, V]):
    """A record to send. If the partition is None, the partitioner chooses it."""

    topic: str
    value: V | None = None
    key: K | None = None
    headers: Sequence[Header] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where a record was written. With acks=0 the broker reports no offset: it is None."""

    topic: str
    partition: int
    offset: int | None
    timestamp_ms: int | None


class Record(Generic[K, V]):
    """A record that was read. Key and value are deserialized; the rest comes from librdkafka's
    message on demand, since most applications need little of it. Tests create one by `make`.
    """

    __slots__ = ("key", "message", "value")

    def __init__(self, message: Message, key: K | None, value: V | None) -> None:
        self.message, self.key, self.value = message, key, value

    @staticmethod
    def make(
        topic: str,
        partition: int,
        offset: int,
        key: K | None = None,
        value: V | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int = -1,
        timestamp_type: TimestampType = TimestampType.NOT_AVAILABLE,
    ) -> "Record[K, V]":
        message = Message(
            topic=topic,
            partition=partition,
            offset=offset,
            headers=list(headers),
            timestamp=(timestamp_type, timestamp_ms),
        )
        return Record(message, key, value)

    @property
    def topic(self) -> str:
        return self.message.topic()  # type: ignore[return-value]  # a record has one

    @property
    def partition(self) -> int:
        return self.message.partition()  # type: ignore[return-value]

    @property
    def offset(self) -> int:
        return self.message.offset()  # type: ignore[return-value]

    @property
    def headers(self) -> Sequence[Header]:
        return self.message.headers() or ()  # type: ignore[return-value]

    @property
    def timestamp_ms(self) -> int:
        return self.message.timestamp()[1]

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.message.timestamp()[0])

    @property
    def leader_epoch(self) -> int | None:
        return self.message.leader_epoch()

    @property
    def id(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset

    def header(self, name: str) -> bytes | None:
        """The last header of this name; None if there is none."""
        for each, value in reversed(self.headers):
            if each == name:
                return value
        return None

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickles the record for other processes, without the leader epoch."""
        kind, at_ms = self.message.timestamp()
        rest = list(self.headers), at_ms, TimestampType(kind)
        return Record.make, (*self.id, self.key, self.value, *rest)

    def __repr__(self) -> str:
        return (
            f"Record({self.topic}-{self.partition}@{self.offset}, "
            f"key={self.key!r}, value={self.value!r})"
        )
