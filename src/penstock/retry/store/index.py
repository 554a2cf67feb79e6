"""`DueTimeIndex`: the interface of a store of due times."""

from collections.abc import AsyncIterator, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from penstock.errors import KafkaError
from penstock.types import Offset, Uuid

PAGE: Final = 5000
"""Offsets that a store returns or takes at once."""


class IndexKey(NamedTuple):
    """A partition, by the id of its topic: a recreated topic starts from nothing."""

    topic_id: Uuid
    partition: int


class DueKind(IntEnum):
    """What to do with a record when it is due."""

    RECORD = 0
    SCHEDULE = 1
    CANCELLED = 2
    """Do nothing: it was cancelled or replaced."""
    SPENT = 3
    """Do nothing: it was a command that is already carried out."""
    CANCEL = 4
    """Cancel the record at `origin`, if it still waits."""
    DEAD = 5
    """Write it as a dead letter."""


KINDS: Final = tuple(DueKind)
"""Indexing by number is faster than calling `DueKind`."""


class Entry(NamedTuple):
    """A position and when it is due. Sorts in order of delivery."""

    due_ms: int
    offset: int
    kind: DueKind = DueKind.RECORD
    key: bytes = b""
    """Key of a schedule, or of the tombstone that ended it."""
    origin: int = -1
    """Of a schedule, see `penstock.retry.policy.Recur`; of a cancellation, the offset to cancel."""


class DueStoreUnavailable(KafkaError):
    """The store cannot be reached; deliveries wait."""


class StoreChanged(KafkaError):
    """The store lacks what was written to it: it was emptied, or another service writes to it. A
    new service finds out, and reads the log again where it must.
    """


class DueTimeIndex(Protocol):
    """Entries of many partitions. Methods raise `DueStoreUnavailable`."""

    async def indexed_to(self, key: IndexKey) -> Offset | None:
        """The offset up to which the partition is indexed; None: not at all."""

    async def reset(self, key: IndexKey, to: Offset) -> None:
        """Forget the partition's entries, and set it as indexed up to this offset."""

    async def put(
        self, key: IndexKey, entries: Sequence[Entry], *, since: Offset, to: Offset
    ) -> None:
        """Add entries from `since` on, replace earlier ones by offset, and set the partition as
        indexed up to `to`, atomically. Raises `StoreChanged` unless it was indexed up to `since`.
        """

    async def due(self, key: IndexKey, now_ms: int, limit: int) -> list[Entry]:
        """The first due entries, in order."""

    async def next_due_ms(self, key: IndexKey) -> int | None: ...

    async def remove(self, key: IndexKey, offsets: Iterable[int]) -> None: ...

    async def waits(self, key: IndexKey, offset: int) -> bool:
        """Whether there is an entry for this offset."""

    def pages(self, key: IndexKey) -> AsyncIterator[Sequence[int]]:
        """The offsets of all entries, some thousands at a time, in any order."""

    async def schedules(self, key: IndexKey) -> list[Entry]:
        """Entries of the kinds SCHEDULE and SPENT."""

    async def close(self) -> None: ...
