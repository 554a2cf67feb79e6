"""An open file on the operating system's disk."""

import os
from contextlib import suppress
from pathlib import Path

from penstock.log.files import storage_error
from penstock.types import Buffer


class DiskFile:
    """A file of the operating system, written by position: no seek, no O_APPEND."""

    __slots__ = ("_fd", "_open", "path", "size")

    def __init__(self, path: Path, fd: int, open_files: set[int]) -> None:
        self.path = path
        self._fd, self._open = fd, open_files
        open_files.add(fd)
        self.size = os.fstat(fd).st_size

    def append(self, data: Buffer) -> None:
        at = self.size
        try:
            written = os.pwrite(self._fd, data, at)
            if written != len(data):
                self._write_rest(at + written, memoryview(data)[written:])
        except OSError as error:
            with suppress(OSError):  # the first error is the one to report
                os.ftruncate(self._fd, at)
            raise storage_error(self.path, error) from error
        self.size = at + len(data)

    def write(self, position: int, data: Buffer) -> None:
        try:
            self._write_rest(position, memoryview(data))
        except OSError as error:
            raise storage_error(self.path, error) from error
        self.size = max(self.size, position + len(data))

    def _write_rest(self, position: int, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._fd, data, position)
            position += written
            data = data[written:]

    def read(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._fd, size, position)
            if len(data) < size and position + len(data) < self.size:
                return data + self._read_rest(position + len(data), size - len(data))
        except OSError as error:
            raise storage_error(self.path, error) from error
        return data

    def _read_rest(self, position: int, size: int) -> bytes:
        # One call returns at most 2 GiB, and a signal may cut it short.
        parts = []
        while size and (part := os.pread(self._fd, size, position)):
            parts.append(part)
            position += len(part)
            size -= len(part)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise storage_error(self.path, error) from error
        self.size = size

    def sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise storage_error(self.path, error) from error

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._open.discard(fd)
            os.close(fd)

    def __del__(self) -> None:
        # A slice that is being sent may hold the last reference to a released file.
        self.close()
