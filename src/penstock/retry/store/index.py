"""`TimeIndex`: what a store of due times can do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from penstock.errors import KafkaError
from penstock.types import Offset, Uuid


class IndexKey(NamedTuple):
    """A partition, by the id of its topic: a topic that is made anew begins anew."""

    topic_id: Uuid
    partition: int


class Kind(IntEnum):
    """What to do with a record when it is due."""

    RECORD = 0
    SCHEDULE = 1
    CANCELLED = 2
    """Nothing: it was cancelled, or replaced."""
    SPENT = 3
    """Nothing: it was an order, which is carried out."""
    CANCEL = 4
    """Cancel the record at `origin`, if it still waits."""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A position and when it is due. The order is that of delivery."""

    due_ms: int
    offset: int
    kind: Kind = Kind.RECORD
    key: bytes = b""
    """Of a schedule, or of the tombstone that ended it."""
    origin: int = -1
    """Of a schedule: see `penstock.retry.policy.Recur`. Of a cancellation: what is cancelled."""


class StoreUnavailable(KafkaError):
    """The store cannot be reached; deliveries wait."""


class TimeIndex(Protocol):
    """Entries of many partitions. Raises `StoreUnavailable`."""

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        """The offset up to which the partition is indexed; None: not at all."""

    async def put(self, key: IndexKey, entries: Sequence[Entry], indexed_to: Offset) -> None:
        """Add or replace entries, by offset; all of them and the offset, or nothing."""

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        """The first entries that are due, in order."""

    async def next_due_ms(self, key: IndexKey) -> int | None: ...

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None: ...

    async def counts(self, key: IndexKey, chunk: int) -> Mapping[int, int]:
        """How many entries there are by `offset // chunk`."""

    async def offsets(self, key: IndexKey, low: int, high: int) -> list[int]:
        """Offsets of entries from low, below high."""

    async def schedules(self, key: IndexKey) -> list[Entry]:
        """Entries of the kinds SCHEDULE and SPENT."""

    async def clear(self, key: IndexKey) -> None:
        """Forget the partition."""

    async def close(self) -> None: ...
