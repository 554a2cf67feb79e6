"""A bound on open segments: files are limited, and most segments are rarely read."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from penstock.errors import StorageError
from penstock.log.files import Files, OutOfFiles

DEFAULT_LIMIT = 4096
MAX_LIMIT = 16_384
"""Each may map two indexes, and Linux allows a process 65,530 maps by default."""


class Releasable(Protocol):
    """A segment as `OpenSegments` uses it."""

    def release(self, *, trim: bool = True) -> None: ...


class OpenSegments:
    """The segments with open files, shared by all logs of a store.

    The segment opened first is released first. That costs nothing while reading and appending; a
    segment that is still in use opens again.

    `shed` disconnects what keeps released files open the longest, such as a client that does not
    read its response; it returns whether there was any.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._segments: dict[Releasable, None] = {}
        self.shed: Callable[[], bool] = lambda: False

    def add(self, segment: Releasable) -> None:
        self._segments[segment] = None
        if len(self._segments) > self._limit:
            self._release_oldest()

    def make_room(self, files: Files, path: Path) -> None:
        """Release segments until `path` may be opened and held.

        Released files stay open while slices of them are sent to clients, which may be slow. Once
        too few are left for all others, the slowest client is disconnected.
        """
        while not files.has_room():
            if len(self._segments) <= self._limit // 4 and self.shed():
                continue
            if not self._segments:
                raise OutOfFiles(f"{path}: as many files are open as the limit of files allows")
            self._release_oldest()

    def _release_oldest(self) -> None:
        """Release the segment that was opened first, which may lie on another disk than the file
        that needs its place: a failure of that disk must not look like one of this.

        Index entries that could not be written are read from the batches again.
        """
        oldest = next(iter(self._segments))
        del self._segments[oldest]
        try:
            oldest.release()
        except OutOfFiles:
            self._segments[oldest] = None  # it is still open
            raise
        except StorageError:
            oldest.release(trim=False)

    def discard(self, segment: Releasable) -> None:
        self._segments.pop(segment, None)
