"""An in-memory file system that can crash: it tracks what was synced.

A crash may lose data that no `sync` covered, and names that no `sync_dir` covered. The caller
chooses how much survives, so a test can lose all, keep all, or tear a write in the middle.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from penstock.errors import StorageError
from penstock.log.files import DirectoryLocked, storage_error
from penstock.types import Buffer

Choice: TypeAlias = Callable[[str, int], int]
"""How many of `n` unsynced "names", "bytes" or "zeros" survive a crash: 0 to n."""


def lose_everything(_kind: str, _count: int) -> int:
    return 0


@dataclass(slots=True, eq=False)
class _Inode:
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    # None: truncated to the position
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ms: int = 0

    def write(self, position: int, data: bytes) -> None:
        self.data[position : position + len(data)] = data
        self.unsynced.append((position, data))

    def truncate(self, size: int) -> None:
        _resize(self.data, size)
        self.unsynced.append((size, None))

    def sync(self) -> None:
        self.synced = bytes(self.data)
        self.unsynced.clear()

    def crash(self, choose: Choice) -> None:
        total = sum(1 if data is None else len(data) for _, data in self.unsynced)
        left = choose("bytes", total) if total else 0
        survivor = bytearray(self.synced)
        for position, data in self.unsynced:
            if data is None and left:
                _resize(survivor, position)
                left -= 1
            elif data is not None:
                kept = data[:left]
                if kept:
                    _resize(survivor, max(len(survivor), position))
                    survivor[position : position + len(kept)] = kept
                left -= len(kept)
        missing = len(self.data) - len(survivor)
        if missing > 0:  # the new size may be on disk without the data
            survivor += bytes(choose("zeros", missing))
        self.data, self.synced = survivor, bytes(survivor)
        self.unsynced.clear()


def _resize(data: bytearray, size: int) -> None:
    del data[size:]
    data += bytes(size - len(data))


@dataclass(slots=True, eq=False)
class _Directory:
    entries: dict[str, "_Inode | _Directory"] = field(default_factory=dict)
    synced: dict[str, "_Inode | _Directory"] = field(default_factory=dict)
    unsynced: list[Callable[[dict[str, "_Inode | _Directory"]], object]] = field(
        default_factory=list
    )

    def apply(self, change: Callable[[dict[str, "_Inode | _Directory"]], object]) -> None:
        change(self.entries)
        self.unsynced.append(change)

    def sync(self) -> None:
        self.synced = dict(self.entries)
        self.unsynced.clear()

    def crash(self, choose: Choice) -> None:
        count = len(self.unsynced)
        for change in self.unsynced[: choose("names", count) if count else 0]:
            change(self.synced)
        self.entries = dict(self.synced)
        self.unsynced.clear()
        for entry in self.entries.values():
            entry.crash(choose)


class FakeFile:
    """An open file in a `FakeFiles`."""

    def __init__(self, files: "FakeFiles", path: Path, inode: _Inode) -> None:
        self._files, self.path, self._inode = files, path, inode

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def append(self, data: Buffer) -> None:
        self._files.operate("append", self.path)
        self._inode.write(self.size, bytes(data))
        self._inode.modified_ms = self._files.now_ms

    def write(self, position: int, data: Buffer) -> None:
        self._files.operate("write", self.path)
        assert position <= self.size
        self._inode.write(position, bytes(data))
        self._inode.modified_ms = self._files.now_ms

    def read(self, position: int, size: int) -> bytes:
        self._files.operate("read", self.path)
        return bytes(self._inode.data[position : position + size])

    def truncate(self, size: int) -> None:
        self._files.operate("truncate", self.path)
        self._inode.truncate(size)

    def sync(self) -> None:
        self._files.operate("sync", self.path)
        self._inode.sync()

    def fileno(self) -> int:
        raise OSError("a file in memory has no descriptor")

    def close(self) -> None:
        pass


class FakeFiles:
    """The fake file system. `now_ms` is the time of modifications; `operations` counts the
    calls so far.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.operations = 0
        self._root = _Directory()
        self._locked: set[Path] = set()
        self._failing: dict[str, int] = {}
        self._failing_at: dict[int, int] = {}

    def crash(self, choose: Choice = lose_everything) -> None:
        self._root.crash(choose)
        self._locked.clear()
        self._failing.clear()
        self._failing_at.clear()

    def fail_next(self, operation: str, error: int) -> None:
        """Make the next call of the method named `operation` fail with this errno."""
        self._failing[operation] = error

    def fail_at(self, operation_number: int, error: int) -> None:
        """Make every call fail from the one that brings `operations` to this number."""
        self._failing_at = {operation_number: error}

    def flip_bit(self, path: Path, at: int) -> None:
        """Flip bit `at % 8` of byte `at // 8`, in synced and unsynced data alike."""
        inode = self._file(path)
        inode.data[at // 8] ^= 1 << at % 8
        if at // 8 < len(inode.synced):
            synced = bytearray(inode.synced)
            synced[at // 8] ^= 1 << at % 8
            inode.synced = bytes(synced)

    def operate(self, operation: str, path: Path) -> None:
        self.operations += 1
        error = self._failing.pop(operation, None)
        for number, stopped in self._failing_at.items():
            if self.operations >= number:
                error = stopped
        if error is not None:
            raise storage_error(path, OSError(error, os.strerror(error)))

    def has_room(self) -> bool:
        return True

    def open(self, path: Path, *, create: bool = False) -> FakeFile:
        self.operate("open", path)
        if create and not self.exists(path):
            inode = _Inode(modified_ms=self.now_ms)
            self._directory(path.parent).apply(lambda entries: entries.update({path.name: inode}))
        return FakeFile(self, path, self._file(path))

    def read(self, path: Path) -> bytes:
        self.operate("read", path)
        return bytes(self._file(path).data)

    def mapped(self, path: Path) -> bytes:
        self.operate("read", path)
        return bytes(self._file(path).data)

    def names(self, path: Path) -> list[str]:
        return sorted(self._directory(path).entries)

    def exists(self, path: Path) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: Path) -> bool:
        return isinstance(self._find(path), _Directory)

    def size(self, path: Path) -> int:
        return len(self._file(path).data)

    def modified_ms(self, path: Path) -> int:
        return self._file(path).modified_ms

    def make_dir(self, path: Path) -> None:
        self.operate("make_dir", path)
        for parent in [*reversed(path.parents), path][1:]:
            if not self.exists(parent):
                made = _Directory()
                name = parent.name
                self._directory(parent.parent).apply(_adding(name, made))

    def rename(self, old: Path, new: Path) -> None:
        self.operate("rename", old)
        assert old.parent == new.parent, "renames stay within a directory"
        if not self.exists(old):
            raise missing(old)
        self._directory(old.parent).apply(_renaming(old.name, new.name))

    def remove(self, path: Path) -> None:
        self.operate("remove", path)
        if self.exists(path):
            self._directory(path.parent).apply(lambda entries: entries.pop(path.name, None))

    def remove_dir(self, path: Path) -> None:
        self.operate("remove_dir", path)
        if self._directory(path).entries:
            raise storage_error(path, OSError(39, "Directory not empty"))
        self._directory(path.parent).apply(lambda entries: entries.pop(path.name, None))

    def sync_dir(self, path: Path) -> None:
        self.operate("sync_dir", path)
        self._directory(path).sync()

    def lock(self, path: Path) -> Callable[[], None]:
        self.open(path, create=True)
        if path in self._locked:
            raise DirectoryLocked(path)
        self._locked.add(path)
        return lambda: self._locked.discard(path)

    def _find(self, path: Path) -> _Inode | _Directory | None:
        node: _Inode | _Directory | None = self._root
        for name in path.parts[1:]:
            node = node.entries.get(name) if isinstance(node, _Directory) else None
        return node

    def _file(self, path: Path) -> _Inode:
        node = self._find(path)
        if not isinstance(node, _Inode):
            raise missing(path)
        return node

    def _directory(self, path: Path) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise missing(path)
        return node

    def walk(self, path: Path) -> Iterator[Path]:
        """Every file below `path`."""
        for name in self.names(path):
            if self.is_dir(path / name):
                yield from self.walk(path / name)
            else:
                yield path / name


def missing(path: Path) -> StorageError:
    return storage_error(path, FileNotFoundError(2, "No such file or directory"))


def _adding(name: str, made: _Directory) -> Callable[[dict[str, _Inode | _Directory]], object]:
    return lambda entries: entries.update({name: made})


def _renaming(old: str, new: str) -> Callable[[dict[str, _Inode | _Directory]], object]:
    def change(entries: dict[str, _Inode | _Directory]) -> None:
        if old in entries:
            entries[new] = entries.pop(old)

    return change
