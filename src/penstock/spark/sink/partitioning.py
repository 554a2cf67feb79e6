"""The partition of each row: by its column partition, else by its key as in Java, else spread."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.spark.sink.encode import RecordColumns, partitions
from penstock.spark.sink.rows import BadRow

Int32s = npt.NDArray[np.int32]

_RADIX_BELOW = 1 << 15
"""Numpy sorts numbers of 16 bits in linear time."""


class Partitioner(Protocol):
    """Chooses the partition of rows without partition and key."""

    def partition(self, topic: str, partitions: int) -> int: ...


class RoundRobinPartitioner:
    """One partition for all such rows of a batch, the next partition for the next batch."""

    def __init__(self, turn: int) -> None:
        self._turn = turn

    def partition(self, topic: str, partitions: int) -> int:  # noqa: ARG002 - all turn alike
        self._turn += 1
        return self._turn % partitions


class TaskPartitioner:
    """One partition for all such rows of a task, the same in every attempt."""

    def __init__(self, task: int) -> None:
        self._task = task

    def partition(self, topic: str, partitions: int) -> int:  # noqa: ARG002 - all alike
        return self._task % partitions


def chosen_partitions(
    topic: str,
    count: int,
    rows: RecordColumns,
    requested: Int32s | None,
    size: int,
    partitioner: Partitioner,
    selected: Int32s | None = None,
) -> Int32s:
    """The partition of each of `size` rows, in a topic with `count` partitions.

    Only those of the `selected` rows mean something: others are of other topics.
    """
    if count == 1 and requested is None:
        return np.zeros(size, np.int32)
    chosen = np.full(size, -1, np.int32)
    if rows.key is not None and (requested is None or bool((requested < 0).any())):
        partitions(rows.key, count, chosen.data)
    if requested is not None:
        own = requested if selected is None else requested[selected]
        beyond = own[own >= count]
        if len(beyond):
            raise BadRow(
                f"column partition has {int(beyond[0])}, but topic {topic} has "
                f"partitions 0 to {count - 1}"
            )
        chosen = np.where(requested >= 0, requested, chosen)
    unassigned = chosen < 0
    if bool(unassigned.any()):
        chosen[unassigned] = partitioner.partition(topic, count)
    return chosen


def rows_by_partition(
    chosen: Int32s, rows: Int32s | None, count: int
) -> Iterator[tuple[int, Int32s]]:
    """Partitions with their rows, in order; `rows` selects some of them, None means all."""
    selected = chosen if rows is None else chosen[rows]
    if not len(selected):
        return
    first = int(selected[0])
    if bool((selected == first).all()):
        yield first, np.arange(len(chosen), dtype=np.int32) if rows is None else rows
        return
    narrow = selected.astype(np.int16) if count <= _RADIX_BELOW else selected
    order = np.argsort(narrow, kind="stable").astype(np.int32)
    picked = order if rows is None else rows[order]
    ends = np.cumsum(np.bincount(selected, minlength=count))
    start = 0
    for partition, end in enumerate(ends):
        if end > start:
            yield partition, picked[start:end]
        start = end
