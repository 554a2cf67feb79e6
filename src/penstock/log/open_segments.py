"""A bound on open segments: files are limited, and most segments are rarely read."""

from typing import Protocol

DEFAULT_LIMIT = 4096


class Releasable(Protocol):
    """A segment, as far as this is concerned."""

    def release(self) -> None: ...


class OpenSegments:
    """The segments with open files, shared by all logs of a store.

    The one opened first is released first. That costs nothing while reading and appending, and
    one that is in use merely opens again.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._segments: dict[Releasable, None] = {}

    def add(self, segment: Releasable) -> None:
        self._segments[segment] = None
        if len(self._segments) > self._limit:
            oldest = next(iter(self._segments))
            del self._segments[oldest]
            oldest.release()

    def discard(self, segment: Releasable) -> None:
        self._segments.pop(segment, None)
