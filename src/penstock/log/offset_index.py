"""`.index`: from an offset to a position in the segment file, for some of its batches.

Entries are 4 bytes of relative offset and 4 of position: the last offset of a batch, and where
that batch begins. Sparse: one for each `index.interval.bytes` of log.
"""

from pathlib import Path
from struct import Struct
from typing import Final

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.log.index_entries import IndexEntries

ENTRY: Final = Struct(">II")
ENTRY_BYTES: Final = ENTRY.size


class OffsetIndex:
    """The offset index of the segment that begins at `base_offset`."""

    __slots__ = ("_base_offset", "entries", "last_offset")

    def __init__(self, entries: IndexEntries, base_offset: int) -> None:
        self.entries = entries
        self._base_offset = base_offset
        self.last_offset = base_offset + entries[len(entries) - 1][0] if entries else -1

    @classmethod
    def open(cls, files: Files, path: Path, base_offset: int, log_bytes: int) -> "OffsetIndex":
        """The index as its file has it; `CorruptFile` when its end cannot be right."""
        size_bytes = files.size(path)
        if size_bytes % ENTRY_BYTES:
            raise CorruptFile(str(path), f"has {size_bytes} bytes, no multiple of {ENTRY_BYTES}")
        entries = IndexEntries(files, path, ENTRY, size_bytes)
        if entries:
            offset, position = entries[len(entries) - 1]
            if position >= log_bytes or position == 0 or offset == 0:
                raise CorruptFile(str(path), f"points to byte {position} of {log_bytes}")
        return cls(entries, base_offset)

    @classmethod
    def new(cls, files: Files, path: Path, base_offset: int) -> "OffsetIndex":
        return cls(IndexEntries.new(files, path, ENTRY), base_offset)

    @classmethod
    def empty(cls, files: Files, path: Path, base_offset: int) -> "OffsetIndex":
        return cls(IndexEntries.empty(files, path, ENTRY), base_offset)

    def append(self, offset: int, position: int) -> None:
        assert offset > self.last_offset, "offsets ascend"
        self.entries.append(offset - self._base_offset, position)
        self.last_offset = offset

    def lookup(self, offset: int) -> tuple[int, int]:
        """Offset and position of the last entry at or before `offset`; else of the beginning."""
        number = self.entries.floor(offset - self._base_offset)
        if number < 0:
            return self._base_offset, 0
        relative, position = self.entries[number]
        return self._base_offset + relative, position

    def last(self) -> tuple[int, int]:
        """Offset and position of the last entry; else of the beginning."""
        if not self.entries:
            return self._base_offset, 0
        relative, position = self.entries[len(self.entries) - 1]
        return self._base_offset + relative, position

    def offset_after(self, position: int) -> int | None:
        """An offset after all batches before byte `position`, and near it; None behind the last."""
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            if self.entries[middle][1] < position:
                low = middle + 1
            else:
                high = middle
        return self._base_offset + self.entries[low][0] if low < len(self.entries) else None

    def truncate_to(self, offset: int) -> None:
        """Forget entries of batches that end at or after `offset`."""
        entries = self.entries
        entries.keep(max(entries.floor(offset - self._base_offset - 1) + 1, 0))
        self.last_offset = self._base_offset + entries[len(entries) - 1][0] if entries else -1
