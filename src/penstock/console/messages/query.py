"""A search query, and the cursor that says how far a search has come. Pure.

The cursor is the only state between two requests, so a search can stop anywhere and continue later,
even in another console. It fixes the range of offsets when the search begins, so that later records
do not change the result.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from penstock.errors import ConfigError

SearchedPart: TypeAlias = Literal["any", "key", "value", "headers"]
SEARCHED_PARTS: Final[tuple[SearchedPart, ...]] = ("any", "key", "value", "headers")
LARGEST: Final = (1 << 63) - 1


class SearchQuery(Struct, frozen=True, omit_defaults=True):
    """The conditions of a search; a record must meet all of them. Without conditions
    every record matches.
    """

    topic: str
    partitions: tuple[int, ...] = ()
    """Empty: all partitions."""
    text: str = ""
    """Bytes that the record contains, as UTF-8."""
    place: SearchedPart = "any"
    """Where the text must be."""
    key: str | None = None
    """The whole key, as UTF-8."""
    expression: str = ""
    """A CEL expression."""
    start: int = 0
    end: int = LARGEST
    """The end of the offset range; it applies in each partition."""
    since_ms: int = 0
    until_ms: int = LARGEST
    newest_first: bool = True
    committed: bool = False
    """Leaves out records of open and aborted transactions."""


class Span(Struct):
    """A partition's range of offsets, and how much of it was searched.

    The search continues at `position`: upwards from it, or downwards below it. `bound` limits the
    timestamps of what follows (newest first: the highest possible); partitions are merged by it.
    """

    partition: int
    start: int
    end: int
    position: int
    bound: int

    def scanned(self, *, newest_first: bool) -> int:
        return self.end - self.position if newest_first else self.position - self.start


class Cursor(Struct, frozen=True):
    """A search and its progress."""

    query: SearchQuery
    spans: list[Span]
    matches: int = 0
    """Records found so far."""

    @property
    def total(self) -> int:
        """The number of offsets to search. Compacted topics have fewer records than offsets."""
        return sum(each.end - each.start for each in self.spans)

    @property
    def scanned(self) -> int:
        newest_first = self.query.newest_first
        return sum(each.scanned(newest_first=newest_first) for each in self.spans)

    @property
    def is_done(self) -> bool:
        return self.scanned >= self.total


def begun(query: SearchQuery, ranges: dict[int, tuple[int, int]]) -> Cursor:
    """The cursor of a new search in these offset ranges, by partition."""
    spans = []
    for partition, (start, end) in sorted(ranges.items()):
        end = max(start, end)
        position, bound = (end, LARGEST) if query.newest_first else (start, -1)
        spans.append(Span(partition, start, end, position, bound))
    return Cursor(query, spans)


def token(cursor: Cursor) -> str:
    """The cursor as text for a URL."""
    return urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def cursor_of(text: str, topic: str) -> Cursor:
    """Parse a token; `ConfigError` if it is malformed or of another topic."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.msgpack.decode(data, type=Cursor)
    except (ValueError, msgspec.DecodeError):
        raise ConfigError("cursor: it is not one that a search returned") from None
    if cursor.query.topic != topic or not all(map(_is_sane, cursor.spans)):
        raise ConfigError(f"cursor: it is not one of a search in {topic}")
    return cursor


def _is_sane(span: Span) -> bool:
    return span.partition >= 0 and 0 <= span.start <= span.position <= span.end <= LARGEST
