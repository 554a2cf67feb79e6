"""Files on the operating system's disk, as brokers use them."""

import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.log.disk_file import DiskFile
from penstock.log.files import DirectoryLocked, OutOfFiles, storage_error
from penstock.types import Buffer


class DiskFiles:
    """The operating system's file system; `max_held` files may be held open."""

    def __init__(self, max_held: int = 1 << 20) -> None:
        self._max_held = max_held
        self._open: set[int] = set()
        """Open descriptors. Adding and discarding are single calls, so any thread may do it."""

    def has_room(self) -> bool:
        return len(self._open) < self._max_held

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return DiskFile(path, os.open(path, flags, 0o644), self._open)
        except OSError as error:
            raise storage_error(path, error) from error

    def read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise storage_error(path, error) from error

    def mapped(self, path: Path) -> Buffer | mmap.mmap:
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return b""  # an empty map is refused
                return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except OSError as error:
            if error.errno == errno.ENOMEM:  # too many maps: `vm.max_map_count`
                raise OutOfFiles(f"{path}: {error.strerror} (ENOMEM)") from error
            raise storage_error(path, error) from error

    def names(self, path: Path) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(path))
        except OSError as error:
            raise storage_error(path, error) from error

    def exists(self, path: Path) -> bool:
        try:
            return path.exists()
        except OSError as error:  # a failed disk says neither yes nor no
            raise storage_error(path, error) from error

    def is_dir(self, path: Path) -> bool:
        try:
            return path.is_dir()
        except OSError as error:
            raise storage_error(path, error) from error

    def size(self, path: Path) -> int:
        try:
            return path.stat().st_size
        except OSError as error:
            raise storage_error(path, error) from error

    def modified_ms(self, path: Path) -> int:
        try:
            return path.stat().st_mtime_ns // 1_000_000
        except OSError as error:
            raise storage_error(path, error) from error

    def make_dir(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(path, error) from error

    def rename(self, old: Path, new: Path) -> None:
        try:
            old.replace(new)
        except OSError as error:
            raise storage_error(old, error) from error

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(path, error) from error

    def remove_dir(self, path: Path) -> None:
        try:
            path.rmdir()
        except OSError as error:
            raise storage_error(path, error) from error

    def sync_dir(self, path: Path) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise storage_error(path, error) from error

    def lock(self, path: Path) -> Callable[[], None]:
        file = self.open(path, create=True)
        try:
            # flock keeps out other owners in this process too; lockf is the one that Java's
            # FileLock takes. On Linux the two are independent of each other. On macOS each kind
            # keeps out the other, even in one process: a lockf here would always fail.
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if sys.platform == "linux":
                fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            raise DirectoryLocked(path) from None
        except OSError as error:
            file.close()
            raise storage_error(path, error) from error
        return file.close
