"""Reads the entries of index files as stored, and compares them with the batches."""

from collections.abc import Iterator
from struct import Struct

from penstock.log.corrupt import CorruptFile
from penstock.log.offset_index import ENTRY as OFFSET_ENTRY
from penstock.log.segment_files import INDEX, TIME_INDEX
from penstock.log.time_index import ENTRY as TIME_ENTRY
from penstock.record.batch import BatchHeader


def offset_entries(data: bytes, base_offset: int, what: str) -> list[tuple[int, int]]:
    """Offset and position of each entry."""
    return [(base_offset + relative, at) for relative, at in _entries(OFFSET_ENTRY, data, what)]


def time_entries(data: bytes, base_offset: int, what: str) -> list[tuple[int, int]]:
    """Timestamp and offset of each entry."""
    return [(time, base_offset + relative) for time, relative in _entries(TIME_ENTRY, data, what)]


def _entries(entry: Struct, data: bytes, what: str) -> Iterator[tuple[int, int]]:
    """The entries up to the first empty slot: an active segment's file has space for more."""
    if len(data) % entry.size:
        raise CorruptFile(what, f"has {len(data)} bytes, no multiple of {entry.size}")
    for first, second in entry.iter_unpack(data):
        if first == 0 and second == 0:
            return
        yield first, second


class IndexCheck:
    """Compares the entries of both indexes with the batches, which `see` gets in order.

    `problems` have the suffix of the index that is wrong.
    """

    def __init__(self, offsets: list[tuple[int, int]], times: list[tuple[int, int]]) -> None:
        self._offsets, self._times = offsets, times
        self._offset_number = self._time_number = 0
        self.problems: list[tuple[str, str]] = []

    def see(self, position: int, header: BatchHeader) -> None:
        while self._offset_number < len(self._offsets):
            offset, at = self._offsets[self._offset_number]
            if at > position:
                break
            self._offset_number += 1
            if at != position or offset != header.last_offset:
                self._found(
                    INDEX,
                    f"offset {offset} at byte {at} is not the last of a batch; "
                    f"byte {position} has offset {header.last_offset}",
                )
        while self._time_number < len(self._times):
            timestamp, offset = self._times[self._time_number]
            if offset > header.last_offset:
                break
            self._time_number += 1
            if timestamp != header.max_timestamp:
                self._found(
                    TIME_INDEX,
                    f"{timestamp} at offset {offset} is not the newest timestamp of its batch, "
                    f"{header.max_timestamp}",
                )

    def end(self) -> None:
        for offset, at in self._offsets[self._offset_number :]:
            self._found(INDEX, f"offset {offset} at byte {at} lies behind the last batch")
        for timestamp, offset in self._times[self._time_number :]:
            self._found(TIME_INDEX, f"{timestamp} at offset {offset} lies behind the last batch")
        for suffix, entries in ((INDEX, self._offsets), (TIME_INDEX, self._times)):
            if entries != sorted(entries):
                self._found(suffix, "entries are not in order")

    def _found(self, suffix: str, problem: str) -> None:
        self.problems.append((suffix, problem))
