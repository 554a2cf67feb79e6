"""Which offsets, and which groups, nobody has needed for long enough."""

from collections.abc import Iterator, Set

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import ConsumerGroup, GroupState
from penstock.coordinator.group.consumer.offsets import forgotten
from penstock.coordinator.group.offsets import Offsets, expired
from penstock.coordinator.group.records import GroupRecord, OffsetRecord, StoredRecord
from penstock.coordinator.group.state import State
from penstock.types import TopicPartition


def lapsed(
    group: ClassicGroup,
    offsets: Offsets,
    held: Set[TopicPartition],
    now_ms: int,
    retention_ms: int,
) -> Iterator[StoredRecord]:
    """Tombstones for offsets past their retention, and for a group that is left with nothing.

    What an open transaction holds stays: its end would bring back what was forgotten.
    """
    gone = [each for each in expired(group, offsets, now_ms, retention_ms) if each not in held]
    yield from (OffsetRecord(group.id, *where, None) for where in gone)
    is_unused = len(gone) == len(offsets) and not held
    if is_unused and group.state is State.EMPTY and not group.pending:
        yield GroupRecord(group.id, None)


def lapsed_consumer(
    group: ConsumerGroup,
    offsets: Offsets,
    held: Set[TopicPartition],
    now_ms: int,
    retention_ms: int,
) -> Iterator[StoredRecord]:
    gone = [each for each in forgotten(group, offsets, now_ms, retention_ms) if each not in held]
    yield from (OffsetRecord(group.id, *where, None) for where in gone)
    is_unused = len(gone) == len(offsets) and not held
    if is_unused and group.state is GroupState.EMPTY:
        yield from group.tombstones()
