"""`.timeindex`: up to an offset, no record of the segment is newer than a timestamp.

Entries are 8 bytes of timestamp and 4 of relative offset: the largest timestamp so far, and the
last offset of the batch that has it. The last entry of a closed segment is its newest record's.
"""

from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.log.index_entries import IndexEntries

ENTRY: Final = Struct(">qI")
ENTRY_BYTES: Final = ENTRY.size


class TimestampOffset(NamedTuple):
    """A timestamp, and the offset that has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The time index of the segment that begins at `base_offset`; its timestamps ascend."""

    __slots__ = ("_base_offset", "entries", "last")

    def __init__(self, entries: IndexEntries, base_offset: int) -> None:
        self.entries = entries
        self._base_offset = base_offset
        self.last = self._newest()

    @classmethod
    def open(cls, files: Files, path: Path, base_offset: int) -> "TimeIndex":
        """The index as its file has it; `CorruptFile` when its end cannot be right."""
        size_bytes = files.size(path)
        if size_bytes % ENTRY_BYTES:
            raise CorruptFile(str(path), f"has {size_bytes} bytes, no multiple of {ENTRY_BYTES}")
        entries = IndexEntries(files, path, ENTRY, size_bytes)
        if entries and entries[len(entries) - 1][0] < entries[0][0]:
            raise CorruptFile(str(path), "has a last timestamp before its first")
        return cls(entries, base_offset)

    @classmethod
    def new(cls, files: Files, path: Path, base_offset: int) -> "TimeIndex":
        return cls(IndexEntries.new(files, path, ENTRY), base_offset)

    @classmethod
    def empty(cls, files: Files, path: Path, base_offset: int) -> "TimeIndex":
        return cls(IndexEntries.empty(files, path, ENTRY), base_offset)

    def append(self, newest: TimestampOffset) -> None:
        """Note the newest timestamp so far, unless it is no newer than the last noted."""
        if newest.timestamp > self.last.timestamp:
            self.entries.append(newest.timestamp, newest.offset - self._base_offset)
            self.last = newest

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or before `timestamp`; no record before its offset is newer."""
        number = self.entries.floor(timestamp)
        return self._entry(number) if number >= 0 else self._none()

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or after `offset`."""
        kept = len(self.entries)
        while kept and self._base_offset + self.entries[kept - 1][1] >= offset:
            kept -= 1
        self.entries.keep(kept)
        self.last = self._newest()

    def _newest(self) -> TimestampOffset:
        return self._entry(len(self.entries) - 1) if self.entries else self._none()

    def _entry(self, number: int) -> TimestampOffset:
        timestamp, relative = self.entries[number]
        return TimestampOffset(timestamp, self._base_offset + relative)

    def _none(self) -> TimestampOffset:
        return TimestampOffset(-1, self._base_offset)
