"""Reads the log files of `serve --daemon`: one of the broker, and one of each worker."""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path
from typing import NamedTuple

from penstock.cli.daemon import LOG_NAME

HEAD = re.compile(
    rb'\[(?P<time>[^]]*)\] (?P<level>[A-Z]+) |\{"ts": "(?P<ts>[^"]*)", "level": "(?P<name>[A-Z]+)"'
)
"""The beginning of a line, plain or JSON; see `cli.logging`."""


class LogLine(NamedTuple):
    """A line; lines of a traceback have the time and level of the line before them."""

    time: bytes
    level: str
    text: bytes


def log_files(directory: Path) -> list[Path]:
    """The existing log files. Workers and their metadata store have others; see `start_logging`."""
    own = directory / LOG_NAME
    others = sorted(directory.glob(f"{own.stem}-*{own.suffix}"))
    return [own, *others] if own.exists() else others


def parsed(lines: Iterable[bytes]) -> Iterator[LogLine]:
    time, level = b"", ""
    for line in lines:
        if head := HEAD.match(line):
            time = head["time"] or head["ts"]
            level = (head["level"] or head["name"]).decode()
        yield LogLine(time, level, line)


def wanted(lines: Iterable[LogLine], level: str | None) -> Iterator[LogLine]:
    """The lines of this level; `warn` means `warning` too."""
    return (each for each in lines if level is None or each.level.startswith(level.upper()))


def last_lines(paths: Iterable[Path], count: int, level: str | None) -> list[LogLine]:
    """The last lines of all files together, in time order."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            found.append(deque(wanted(parsed(file), level), maxlen=count))
    together = merge(*found, key=lambda each: each.time)
    return list(deque(together, maxlen=count))


class FileTail:
    """Reads what is appended to a file, and continues in the new file after a rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        self._file.close()

    def added(self) -> Iterator[bytes]:
        """The complete lines since the last call."""
        while True:
            is_rotated = self._path.exists() and not os.path.samestat(
                self._path.stat(), os.fstat(self._file.fileno())
            )
            while (line := self._file.readline()).endswith(b"\n"):
                yield line
            if not is_rotated:
                self._file.seek(-len(line), os.SEEK_CUR)
                return
            self._file.close()
            self._file = self._path.open("rb")
