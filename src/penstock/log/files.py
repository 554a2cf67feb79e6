"""The file layer: every byte that `penstock.log` reads or writes goes through `Files`.

`penstock.log.disk` is the real one; `penstock.testing.files` has a fake that can crash. Every
failure is a `StorageError` that names the path: the caller takes the log directory offline, unless
only file descriptors are lacking (`OutOfFiles`).
"""

import errno
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from penstock.errors import ConfigError, StorageError
from penstock.types import Buffer

TEMPORARY: Final = ".tmp"
SPARE_FILES: Final = 4
"""As many as a truncation or a rename has open at a time."""


class OutOfFiles(StorageError):
    """No file descriptor is left. The disk is not at fault, and the error may pass."""


@contextmanager
def finished_or_failed() -> Iterator[None]:
    """For work that must not stop half way: a lack of descriptors then counts as a failed disk."""
    try:
        yield
    except OutOfFiles as error:
        raise StorageError(str(error)) from error


def check_spare(files: "Files", path: Path) -> None:
    """Raise `OutOfFiles` unless some more files can be opened. Called before work that must not
    stop half way, so that it waits instead of failing; `path` is an existing file.
    """
    opened = []
    try:
        for _ in range(SPARE_FILES):
            opened.append(files.open(path))  # noqa: PERF401 (those opened so far are closed)
    finally:
        for each in opened:
            each.close()


class LogFile(Protocol):
    """An open file. The fake and the real one pass the same suite, `check_files`."""

    @property
    def path(self) -> Path:
        """Its name when it was opened."""

    @property
    def size(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """All of `data` at the end, or none of it and a StorageError."""

    def write(self, position: int, data: Buffer) -> None:
        """All of `data` at `position`, which may lie anywhere up to the end."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only where the file ends."""

    def truncate(self, size: int) -> None:
        """Cut to `size`, or extend to it with zeros that take no space."""

    def sync(self) -> None:
        """Return when the contents are on the disk. May be called from another thread."""

    def fileno(self) -> int:
        """For `sendfile`. The descriptor lives as long as this object."""

    def close(self) -> None: ...


class Files(Protocol):
    """A file system. Names, sizes and renames survive a crash only after `sync_dir`."""

    def open(self, path: Path, *, create: bool = False) -> LogFile: ...

    def has_room(self) -> bool:
        """Whether another file may be held open; files opened for a moment need not check."""

    def read(self, path: Path) -> bytes: ...

    def mapped(self, path: Path) -> Buffer | mmap.mmap:
        """The present contents, read-only. A file that has grown must be mapped again."""

    def names(self, path: Path) -> list[str]: ...

    def exists(self, path: Path) -> bool: ...

    def is_dir(self, path: Path) -> bool: ...

    def size(self, path: Path) -> int: ...

    def modified_ms(self, path: Path) -> int: ...

    def make_dir(self, path: Path) -> None:
        """Create it, with its parents, unless it exists."""

    def rename(self, old: Path, new: Path) -> None:
        """Within one directory; replaces `new` atomically."""

    def remove(self, path: Path) -> None:
        """Remove the file if it exists."""

    def remove_dir(self, path: Path) -> None: ...

    def sync_dir(self, path: Path) -> None: ...

    def lock(self, path: Path) -> Callable[[], None]:
        """Hold `path` against other processes until the returned function is called."""


class DirectoryLocked(ConfigError):
    """Another process works in this log directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"log directory {path.parent} is in use: another process holds {path}")


def replace(files: Files, path: Path, data: Buffer) -> None:
    """Put `data` at `path` so that a crash leaves either the old file or the new one."""
    temporary = path.with_name(path.name + TEMPORARY)
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)
        file.append(data)
        file.sync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.sync_dir(path.parent)


def write(files: Files, path: Path, data: Buffer) -> None:
    """Put `data` at `path`. Neither atomic nor synced."""
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        file.append(data)
    finally:
        file.close()


def remove_flat_dir(files: Files, path: Path) -> None:
    """Remove a partition's directory; Kafka's have no sub-directories."""
    for name in files.names(path):
        files.remove(path / name)
    files.remove_dir(path)


def storage_error(path: Path, cause: OSError) -> StorageError:
    name = errno.errorcode.get(cause.errno or 0, "?")
    kind = OutOfFiles if cause.errno in {errno.EMFILE, errno.ENFILE} else StorageError
    return kind(f"{path}: {cause.strerror or cause} ({name})")
