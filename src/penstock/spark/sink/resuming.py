"""Resumes a task behind the rows of an earlier attempt: skips rows that are written already."""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.record.record import Record
from penstock.spark.sink.encode import RecordColumns, field, headers
from penstock.spark.sink.epoch import (
    Fresh,
    PartitionProgress,
    Resumed,
    row_differs,
    rows_are_missing,
)
from penstock.types import TopicPartition


class ReadsBack(Protocol):
    """Reads an earlier attempt's records of a partition, oldest first."""

    def __call__(self, topic_partition: TopicPartition, found: Resumed) -> Iterator[Record]: ...


class Resuming:
    """Compares a task's rows with those written; every task does, since any may be a retry."""

    def __init__(self, read_back: ReadsBack) -> None:
        self._read_back = read_back
        self._known: dict[TopicPartition, PartitionProgress] = {}
        self._unread: dict[TopicPartition, Iterator[Record]] = {}
        self._compared: dict[TopicPartition, int] = {}

    def is_new(self, topic_partition: TopicPartition) -> bool:
        return topic_partition not in self._known

    def begin(self, found: Mapping[TopicPartition, PartitionProgress]) -> dict[TopicPartition, int]:
        """Start new partitions with what their leaders report; their next sequences."""
        self._known |= found
        sequences = {}
        for tp, progress in found.items():
            match progress:
                case Fresh():
                    sequences[tp] = 0
                case Resumed(rows=rows):
                    sequences[tp] = rows
                    self._unread[tp] = self._read_back(tp, progress)
                    self._compared[tp] = 0
        return sequences

    def unwritten(
        self, topic_partition: TopicPartition, rows: RecordColumns, order: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """The rows that are not written yet; `EpochFailed` if a written one differs."""
        unread = self._unread.get(topic_partition)
        if unread is None:
            return order
        for index, row in enumerate(order):
            written = next(unread, None)
            if written is None:
                del self._unread[topic_partition]
                return order[index:]
            if not same(written, rows, int(row)):
                raise row_differs(topic_partition, self._compared[topic_partition])
            self._compared[topic_partition] += 1
        return order[:0]

    def finish(self) -> None:
        """The task has no more rows; `EpochFailed` if an earlier attempt wrote more."""
        for tp, unread in self._unread.items():
            if next(unread, None) is not None:
                compared, found = self._compared[tp], self._known[tp]
                assert isinstance(found, Resumed), "only resumed partitions are read back"
                raise rows_are_missing(tp, compared, found.rows)


def same(written: Record, rows: RecordColumns, row: int) -> bool:
    """Whether the record is this row; not by its timestamp, which differs between attempts."""
    return (
        written.key == field(rows.key, row)
        and written.value == field(rows.value, row)
        and [(name.encode("utf-8", "surrogateescape"), value) for name, value in written.headers]
        == list(headers(rows, row))
    )
