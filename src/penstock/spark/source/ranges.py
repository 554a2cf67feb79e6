"""Divides the offsets to read into tasks: one range per partition, or more if the settings ask."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.types import NO_UUID, TopicPartition, Uuid


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """`start <= offset < end` in one partition: what one task reads."""

    topic_partition: TopicPartition
    start: int
    end: int
    topic_id: Uuid = NO_UUID
    """Id of the topic that the offsets belong to: a recreated topic has other records. `NO_UUID`:
    the task takes the id that it finds.
    """

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.start}, {self.end})"


def cut(
    ranges: Iterable[OffsetRange], *, at_least: int = 0, at_most_records: int = 0
) -> list[OffsetRange]:
    """The ranges that are not empty, in `at_least` pieces of at most `at_most_records` each.

    0 means no limit. The range with the largest pieces is divided next, so that pieces get about
    the same size; a range of a single offset stays whole.
    """
    filled = [each for each in ranges if each.size > 0]
    pieces = [-(-each.size // at_most_records) if at_most_records else 1 for each in filled]
    largest = [
        (-each.size / count, at)
        for at, (each, count) in enumerate(zip(filled, pieces, strict=True))
    ]
    heapq.heapify(largest)
    for _ in range(at_least - sum(pieces)):
        if not largest or -largest[0][0] <= 1:
            break
        at = largest[0][1]
        pieces[at] += 1
        heapq.heapreplace(largest, (-filled[at].size / pieces[at], at))
    return [
        piece for each, count in zip(filled, pieces, strict=True) for piece in _cut(each, count)
    ]


def _cut(whole: OffsetRange, count: int) -> Sequence[OffsetRange]:
    count = min(count, whole.size)
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(edges)]
