"""The entries of an index file, newest ones still in memory.

The file is mapped for searches but written by position, never through the map: on a full disk a
store into a mapped hole kills the process by a signal, while a failed write only takes one log
directory offline.
"""

import mmap
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

from penstock.log.files import Files, LogFile, OutOfFiles
from penstock.types import Buffer

WRITE_BYTES: Final = 4096
"""Entries are written once they have this many bytes, at a flush, and at the end."""


class IndexEntries:
    """Fixed-size entries in ascending order of their first field.

    While its segment is active the file is preallocated to the largest size it may have, as Kafka
    does; `trim` cuts it to its entries. `size_bytes` counts entries, not the file. The file of a
    new log is created when there is something to write, at the first flush, or at the end.
    """

    __slots__ = (
        "_allocated",
        "_entry",
        "_files",
        "_is_made",
        "_mapped",
        "_path",
        "_tail",
        "_written",
        "size_bytes",
    )

    def __init__(self, files: Files, path: Path, entry: Struct, size_bytes: int) -> None:
        self._files = files
        self._path = path
        self._entry = entry
        self._allocated = self._written = size_bytes
        self.size_bytes = size_bytes
        self._tail = bytearray()
        self._mapped: Buffer | mmap.mmap | None = None
        self._is_made = True

    @classmethod
    def new(cls, files: Files, path: Path, entry: Struct) -> "IndexEntries":
        """An index without a file yet; no file of that name may exist."""
        entries = cls(files, path, entry, 0)
        entries._is_made = False
        return entries

    @classmethod
    def empty(cls, files: Files, path: Path, entry: Struct) -> "IndexEntries":
        """An empty index, in a new file or in an old one that is emptied."""
        files.open(path, create=True).truncate(0)
        return cls(files, path, entry, 0)

    def __len__(self) -> int:
        return self.size_bytes // self._entry.size

    def __getitem__(self, number: int) -> tuple[int, int]:
        at = number * self._entry.size
        first, second = (
            self._entry.unpack_from(self._tail, at - self._written)
            if at >= self._written
            else self._entry.unpack_from(self._map(), at)
        )
        return first, second

    def append(self, first: int, second: int) -> None:
        self._tail += self._entry.pack(first, second)
        self.size_bytes += self._entry.size
        if len(self._tail) >= WRITE_BYTES:
            with suppress(OutOfFiles):  # they stay in memory, and the batch is written already
                self.write()

    def floor(self, first: int) -> int:
        """The number of the last entry whose first field is at most this; -1 when there is none."""
        entry_bytes = self._entry.size
        unpack = self._entry.unpack_from
        offset = self._written // entry_bytes
        buffer: Buffer | mmap.mmap = self._tail
        low, high = 0, len(self._tail) // entry_bytes
        if high == 0 or unpack(buffer, 0)[0] > first:
            if self._written == 0:
                return -1
            offset, buffer, high = 0, self._map(), offset
        while low < high:
            middle = (low + high) // 2
            if unpack(buffer, middle * entry_bytes)[0] <= first:
                low = middle + 1
            else:
                high = middle
        return offset + low - 1

    def keep(self, count: int) -> None:
        """Forget all entries but the first `count`."""
        self.size_bytes = count * self._entry.size
        if self.size_bytes >= self._written:
            del self._tail[self.size_bytes - self._written :]
            return
        self._tail.clear()
        self._written = self.size_bytes
        self._mapped = None
        # The rest must read as never written: old entries would count as new ones.
        file = self._open()
        file.truncate(self._written)
        file.truncate(self._allocated)

    def preallocate(self, size_bytes: int) -> None:
        # `segment.index.bytes` may have been lowered since the entries were written.
        size_bytes = max(size_bytes, self._written)
        if self._is_made:
            self._open().truncate(size_bytes)
        self._allocated = size_bytes

    def write(self) -> None:
        """Write the entries in memory to the file."""
        if self._tail:
            self._open().write(self._written, self._tail)
            self._written = self.size_bytes
            self._allocated = max(self._allocated, self._written)
            self._tail = bytearray()
            self._mapped = None

    def trim(self) -> None:
        """Write the entries and give back the space that no entry uses."""
        self.write()
        if self._allocated != self.size_bytes or not self._is_made:
            self._mapped = None
            self._open().truncate(self.size_bytes)
            self._allocated = self.size_bytes

    def handle(self) -> LogFile:
        """The file, all entries in it, for a sync elsewhere."""
        self.write()
        return self._open()

    def _open(self) -> LogFile:
        # Not kept open: it is written rarely, and one open file per segment is enough.
        file = self._files.open(self._path, create=True)
        if not self._is_made:
            file.truncate(self._allocated)
            self._is_made = True
        return file

    def _map(self) -> Buffer | mmap.mmap:
        if self._mapped is None:
            self._mapped = self._files.mapped(self._path)
        return self._mapped
