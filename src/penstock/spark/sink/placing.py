"""Which rows go to which partition of a topic: as asked, by key as the Java client, else spread."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.spark.sink.encode import Rows, partitions
from penstock.spark.sink.rows import BadRow

Int32s = npt.NDArray[np.int32]

_RADIX_BELOW = 1 << 15
"""Numpy sorts numbers of 16 bits in linear time."""


class Spreading(Protocol):
    """Where rows go that have neither partition nor key."""

    def partition(self, topic: str, partitions: int) -> int: ...


class Sticky:
    """One partition for all such rows of a batch, the next one for those of the next batch."""

    def __init__(self, turn: int) -> None:
        self._turn = turn

    def partition(self, topic: str, partitions: int) -> int:  # noqa: ARG002 - all turn alike
        self._turn += 1
        return self._turn % partitions


class ByTask:
    """One partition for all such rows of a task, whichever attempt it is: retries must repeat."""

    def __init__(self, task: int) -> None:
        self._task = task

    def partition(self, topic: str, partitions: int) -> int:  # noqa: ARG002 - all alike
        return self._task % partitions


def placed(
    topic: str, count: int, rows: Rows, asked: Int32s | None, size: int, spreading: Spreading
) -> Int32s:
    """The partition of each of `size` rows, of a topic with `count` partitions."""
    if count == 1 and asked is None:
        return np.zeros(size, np.int32)
    chosen = np.full(size, -1, np.int32)
    if rows.key is not None and (asked is None or bool((asked < 0).any())):
        partitions(rows.key, count, chosen.data)
    if asked is not None:
        beyond = asked >= count
        if bool(beyond.any()):
            raise BadRow(
                f"column partition has {int(asked[beyond][0])}, but topic {topic} has partitions "
                f"0 to {count - 1}"
            )
        chosen = np.where(asked >= 0, asked, chosen)
    homeless = chosen < 0
    if bool(homeless.any()):
        chosen[homeless] = spreading.partition(topic, count)
    return chosen


def grouped(chosen: Int32s, rows: Int32s | None, count: int) -> Iterator[tuple[int, Int32s]]:
    """Partitions and their rows in order; `rows` are those to look at, None for all."""
    looked_at = chosen if rows is None else chosen[rows]
    if not len(looked_at):
        return
    first = int(looked_at[0])
    if bool((looked_at == first).all()):
        yield first, np.arange(len(chosen), dtype=np.int32) if rows is None else rows
        return
    narrow = looked_at.astype(np.int16) if count <= _RADIX_BELOW else looked_at
    order = np.argsort(narrow, kind="stable").astype(np.int32)
    picked = order if rows is None else rows[order]
    ends = np.cumsum(np.bincount(looked_at, minlength=count))
    start = 0
    for partition, end in enumerate(ends):
        if end > start:
            yield partition, picked[start:end]
        start = end
