"""`TimeIndex`: what a store of due times can do."""

from collections.abc import AsyncIterator, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from penstock.errors import KafkaError
from penstock.types import Offset, Uuid

PAGE: Final = 5000
"""Offsets that a store returns or takes at a time."""


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
    DEAD = 5
    """It is a dead letter."""


KINDS: Final = tuple(Kind)
"""By number, faster than `Kind` finds them."""


class Entry(NamedTuple):
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


class StoreChanged(KafkaError):
    """The store does not have what was written to it: it was emptied, or another service writes to
    it. A new service finds out, and reads the log again where it must.
    """


class TimeIndex(Protocol):
    """Entries of many partitions. Raises `StoreUnavailable`."""

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        """The offset up to which the partition is indexed; None: not at all."""

    async def reset(self, key: IndexKey, to: Offset) -> None:
        """Forget the partition's entries; it is indexed up to this offset."""

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        """Add entries from `since` on, replace earlier ones by offset, and be indexed up to `to`:
        all of it or nothing. Raises `StoreChanged` unless the partition was indexed up to `since`.
        """

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        """The first entries that are due, in order."""

    async def next_due_ms(self, key: IndexKey) -> int | None: ...

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None: ...

    async def waits(self, key: IndexKey, offset: int) -> bool:
        """Whether there is an entry of this offset."""

    def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        """The offsets of all entries, some thousands at a time, in any order."""

    async def schedules(self, key: IndexKey) -> list[Entry]:
        """Entries of the kinds SCHEDULE and SPENT."""

    async def close(self) -> None: ...
