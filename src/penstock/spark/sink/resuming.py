"""A task's rows behind those that an earlier attempt wrote: equal ones are passed over."""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.record.record import Record
from penstock.spark.sink.encode import Rows, field, headers
from penstock.spark.sink.epoch import Fresh, Progress, Resumed, different, fewer
from penstock.types import TopicPartition


class ReadsBack(Protocol):
    """Reads an earlier attempt's records of a partition, oldest first."""

    def __call__(self, place: TopicPartition, found: Resumed) -> Iterator[Record]: ...


class Resuming:
    """A task cannot know whether it is a retry, so it begins every partition here."""

    def __init__(self, read_back: ReadsBack) -> None:
        self._read_back = read_back
        self._known: dict[TopicPartition, Progress] = {}
        self._unread: dict[TopicPartition, Iterator[Record]] = {}
        self._compared: dict[TopicPartition, int] = {}

    def is_new(self, place: TopicPartition) -> bool:
        return place not in self._known

    def begin(self, found: Mapping[TopicPartition, Progress]) -> dict[TopicPartition, int]:
        """What leaders say of new partitions; the sequences that their first new rows take."""
        self._known |= found
        sequences = {}
        for place, progress in found.items():
            match progress:
                case Fresh():
                    sequences[place] = 0
                case Resumed(rows=rows):
                    sequences[place] = rows
                    self._unread[place] = self._read_back(place, progress)
                    self._compared[place] = 0
        return sequences

    def left(
        self, place: TopicPartition, rows: Rows, order: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Those of the rows that are not written yet; `EpochFailed` where one differs."""
        unread = self._unread.get(place)
        if unread is None:
            return order
        for index, row in enumerate(order):
            written = next(unread, None)
            if written is None:
                del self._unread[place]
                return order[index:]
            if not same(written, rows, int(row)):
                raise different(place, self._compared[place])
            self._compared[place] += 1
        return order[:0]

    def finish(self) -> None:
        """The task has no more rows: then nothing may be left of what was written."""
        for place, unread in self._unread.items():
            if next(unread, None) is not None:
                compared, found = self._compared[place], self._known[place]
                assert isinstance(found, Resumed), "only such partitions are read back"
                raise fewer(place, compared, found.rows)


def same(written: Record, rows: Rows, row: int) -> bool:
    """Whether the record is this row; its time is not looked at, since attempts have their own."""
    return (
        written.key == field(rows.key, row)
        and written.value == field(rows.value, row)
        and [(name.encode("utf-8", "surrogateescape"), value) for name, value in written.headers]
        == list(headers(rows, row))
    )
