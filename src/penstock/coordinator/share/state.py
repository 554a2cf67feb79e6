"""The state of a share-partition: its start, and the records delivered or finished since."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

import msgspec

from penstock.types import Uuid, uuid_text

NO_START = -1
"""The share-partition has no start yet: its leader chooses one by `share.auto.offset.reset`."""
UNKNOWN_COUNT = -1


class RecordState(IntEnum):
    """Values are Kafka's numbers in messages and records."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
KEPT = FINAL | {RecordState.ARCHIVING}
"""States that a record keeps under the next leader: it is not delivered again."""


class SharePartitionKey(NamedTuple):
    """A partition as one share group reads it."""

    group: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The key as FindCoordinator spells it."""
        return f"{self.group}:{uuid_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """Neighbouring records with the same state and number of deliveries."""

    first: int
    last: int
    state: int
    deliveries: int


class ShareGroupOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a share-partition, as its records add up to it."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = UNKNOWN_COUNT
    """Finished records after the start."""
    created_ms: int = 0
    written_ms: int = 0
    batches: tuple[StateBatch, ...] = ()
    updates: int = 0
    """Update records since the last snapshot."""


def merged(
    known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """`known` with `new` laid over it, from `start_offset` on; equal neighbours are joined.

    A finished record stays finished, and a record that becomes a dead letter (ARCHIVING) can only
    become finished. So a delayed write, older than others of the same leader, undoes nothing.
    """
    found = list(known)
    for batch in new:
        for part in [batch] if batch.state in FINAL else list(_open_to(found, batch)):
            _lay_over(found, part)
    return tuple(
        joined(
            each if each.first >= start_offset else each._replace(first=start_offset)
            for each in found
            if each.last >= start_offset
        )
    )


def _open_to(found: list[StateBatch], new: StateBatch) -> Iterator[StateBatch]:
    """The parts of `new` whose records may have its state."""
    kept = FINAL if new.state == RecordState.ARCHIVING else KEPT
    at = new.first
    for old in islice(found, bisect_left(found, at, key=lambda each: each.last), None):
        if old.first > new.last:
            break
        if old.state in kept:
            if at < old.first:
                yield new._replace(first=at, last=old.first - 1)
            at = old.last + 1
    if at <= new.last:
        yield new._replace(first=at)


def _lay_over(found: list[StateBatch], new: StateBatch) -> None:
    begin = bisect_left(found, new.first, key=lambda each: each.last)
    end = begin
    around = [new]
    while end < len(found) and found[end].first <= new.last:
        old = found[end]
        if old.first < new.first:
            around.insert(0, old._replace(last=new.first - 1))
        if old.last > new.last:
            around.append(old._replace(first=new.last + 1))
        end += 1
    found[begin:end] = around


def joined(batches: Iterable[StateBatch]) -> Iterator[StateBatch]:
    """Ascending batches, with equal neighbours as one."""
    last: StateBatch | None = None
    for each in batches:
        if last is None:
            last = each
        elif last.last + 1 == each.first and last[2:] == each[2:]:
            last = last._replace(last=each.last)
        else:
            yield last
            last = each
    if last is not None:
        yield last
