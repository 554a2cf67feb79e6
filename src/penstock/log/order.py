"""Checks whether batches can follow each other: no CRC covers their base offset and leader epoch.

Both only go up. Where two neighbours contradict each other, one was changed on disk: the earlier if
it leaped ahead of the batches before it, else the later. A gap between two offsets contradicts
nothing: compaction leaves them, on this broker or on the leader that a replica copied, and they
stay when the topic's cleanup policy changes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.record.batch import BatchHeader, CorruptBatch

UNKNOWN_EPOCH = -1
"""The epoch of batches that were written before Kafka had leader epochs."""


class Expected(NamedTuple):
    """The lowest offset and epoch that the next batch may have."""

    next_offset: int
    epoch: int


def in_order(
    found: Iterable[tuple[int, BatchHeader]], base_offset: int
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches of a segment, each believed once the next one does not contradict it.

    Raises `CorruptBatch` at the first batch that cannot be right, and passes on those of `found`.
    """
    expected = Expected(base_offset, UNKNOWN_EPOCH)
    held: tuple[int, BatchHeader] | None = None
    try:
        for position, header in found:
            if held is not None:
                believed, held = held, None
                _check_leap(expected, believed[1], header)
                yield believed
                expected = Expected(
                    believed[1].next_offset, max(expected.epoch, believed[1].leader_epoch)
                )
            _check(expected, header)
            held = position, header
    except CorruptBatch:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def _check(expected: Expected, header: BatchHeader) -> None:
    if header.base_offset < expected.next_offset or header.last_offset_delta < 0:
        raise CorruptBatch(f"offset {header.base_offset} comes after {expected.next_offset - 1}")
    if header.leader_epoch < expected.epoch and header.leader_epoch != UNKNOWN_EPOCH:
        raise CorruptBatch(f"epoch {header.leader_epoch} comes after {expected.epoch}")


def _check_leap(expected: Expected, header: BatchHeader, following: BatchHeader) -> None:
    if expected.next_offset < header.base_offset and following.base_offset < header.next_offset:
        raise CorruptBatch(f"offset {header.base_offset} comes before {following.base_offset}")
    lower = max(expected.epoch, following.leader_epoch) < header.leader_epoch
    if lower and following.leader_epoch != UNKNOWN_EPOCH:
        raise CorruptBatch(f"epoch {header.leader_epoch} comes before {following.leader_epoch}")
