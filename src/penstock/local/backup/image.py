"""The files of a broker at one moment, held open so that later changes do not affect them.

A log file only grows, and replacing or deleting it leaves the old file to those who have it open.
So it is enough to open each file and record its size. Small files are read at once.
"""

import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from errno import EMFILE
from pathlib import Path
from typing import BinaryIO

from penstock.broker.startup.state_file import FILE_NAME as BROKER_STATE
from penstock.broker.startup.state_file import LOCK_NAME as BROKER_LOCK
from penstock.errors import ConfigError
from penstock.local.workers.layout import FILE_NAME as LAYOUT
from penstock.log.files import TEMPORARY
from penstock.log.found import IGNORED
from penstock.log.leftovers import base_offsets, offset_of
from penstock.log.log_dir_owner import BOOT_ID, CLEAN_SHUTDOWN, LOCK
from penstock.log.naming import DirectoryRole, parse_dir_name
from penstock.log.segment_files import DELETED, INDEX, LOG, TIME_INDEX
from penstock.metadata.tree import FILE_NAME as STORE

SMALL = 4096
CHUNK = 1 << 20
LEFT_OUT = (BOOT_ID, LOCK, BROKER_LOCK, BROKER_STATE, LAYOUT, STORE)
"""Prefixes of files that are left out: files about the machine and the process, the metadata, which
is exported instead, and the layout of workers, which is copied beside the logs. They may be here
because a data directory can be a log directory too.
"""


@dataclass(slots=True)
class ImageFile:
    """A file's content at that moment: in memory, or in an open file up to a size."""

    path: str
    size_bytes: int
    content: bytes | BinaryIO

    def chunks(self) -> Iterator[bytes]:
        if isinstance(self.content, bytes):
            yield self.content
            return
        with self.content as file:
            left = self.size_bytes
            while left > 0:
                data = file.read(min(CHUNK, left))
                if not data:
                    raise ConfigError(f"{file.name} became shorter during the backup: try again")
                left -= len(data)
                yield data

    def close(self) -> None:
        if not isinstance(self.content, bytes):
            self.content.close()


def image_of(log_dir: Path, prefix: str) -> Iterator[ImageFile]:
    """The files of a log directory that a start needs; their paths get `prefix`."""
    entries = _entries(log_dir)
    is_clean = any(each.name == CLEAN_SHUTDOWN for each in entries)
    for entry in entries:
        name, path = entry.name, Path(entry.path)
        if not entry.is_dir():
            if not name.startswith(LEFT_OUT) and not name.endswith(TEMPORARY):
                yield _opened(path, f"{prefix}/{name}")
            continue
        found = None if name in IGNORED else parse_dir_name(name)
        if found is not None and found.role in {DirectoryRole.CURRENT, DirectoryRole.FUTURE}:
            for each in _wanted([each.name for each in _entries(path)], is_clean=is_clean):
                yield _opened(path / each, f"{prefix}/{name}/{each}")


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda each: each.name)
    except OSError as error:
        raise ConfigError(f"log directory {path}: {error.strerror}") from None


def _wanted(names: Iterable[str], *, is_clean: bool) -> list[str]:
    """The files to copy: all but deleted files, and the indexes of the last segment, which recovery
    rebuilds and which are large because they are preallocated. `.cleaned` files are kept: they
    invalidate `.swap` files.
    """
    kept = [each for each in names if not each.endswith((DELETED, TEMPORARY))]
    last = None if is_clean else max(base_offsets(kept), default=None)
    return [
        each
        for each in kept
        if last is None or offset_of(each) != last or not each.endswith((INDEX, TIME_INDEX))
    ]


def _opened(path: Path, name: str) -> ImageFile:
    try:
        file = path.open("rb", buffering=0)
    except OSError as error:
        if error.errno == EMFILE:
            raise ConfigError(
                f"{path}: {error.strerror}; a backup holds all segments open: raise the limit of "
                "open files (ulimit -n)"
            ) from None
        raise ConfigError(f"{path}: {error.strerror}") from None
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes <= SMALL and not name.endswith(LOG):
        with file:
            return ImageFile(name, size_bytes, file.read())
    return ImageFile(name, size_bytes, file)


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS has a lower limit than it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
