"""Offsets to read as tasks: one range per partition, cut where more tasks are wanted."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.types import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """`start <= offset < end` of one partition: what one task reads."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets, which may be more than records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.place} [{self.start}, {self.end})"


def cut(
    ranges: Iterable[OffsetRange], *, at_least: int = 0, at_most_records: int = 0
) -> list[OffsetRange]:
    """The ranges that hold anything, cut into `at_least` pieces of at most so many records.

    0 means no such wish. The range whose pieces are largest is cut next, so that they end up of
    much the same size; one of a single offset stays whole.
    """
    kept = [each for each in ranges if each.size > 0]
    pieces = [-(-each.size // at_most_records) if at_most_records else 1 for each in kept]
    largest = [
        (-each.size / count, at) for at, (each, count) in enumerate(zip(kept, pieces, strict=True))
    ]
    heapq.heapify(largest)
    for _ in range(at_least - sum(pieces)):
        if not largest or -largest[0][0] <= 1:
            break
        at = largest[0][1]
        pieces[at] += 1
        heapq.heapreplace(largest, (-kept[at].size / pieces[at], at))
    return [piece for each, count in zip(kept, pieces, strict=True) for piece in _cut(each, count)]


def _cut(whole: OffsetRange, count: int) -> Sequence[OffsetRange]:
    count = min(count, whole.size)
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [OffsetRange(whole.place, start, end) for start, end in pairwise(edges)]
