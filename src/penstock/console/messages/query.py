"""What a search of a topic looks for, and its cursor: how far it has come. Pure.

The cursor is all that a search keeps between two requests, so it can stop anywhere and go on later,
in another console too. It fixes the range of offsets when the search begins: later records do not
change the answer.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from penstock.errors import ConfigError

Place: TypeAlias = Literal["any", "key", "value", "headers"]
PLACES: Final[tuple[Place, ...]] = ("any", "key", "value", "headers")
LARGEST: Final = (1 << 63) - 1


class Query(Struct, frozen=True, omit_defaults=True):
    """What is looked for. Everything that is given must hold; nothing given: every record."""

    topic: str
    partitions: tuple[int, ...] = ()
    """None: all."""
    text: str = ""
    """Bytes that the record contains, as UTF-8."""
    place: Place = "any"
    """Where the text must be."""
    key: str | None = None
    """The whole key, as UTF-8."""
    expression: str = ""
    """CEL."""
    start: int = 0
    end: int = LARGEST
    """Offsets, in each partition."""
    since_ms: int = 0
    until_ms: int = LARGEST
    newest_first: bool = True
    committed: bool = False
    """Whether records of open and aborted transactions are left out."""


class Span(Struct):
    """A partition's range of offsets, and how much of it was searched.

    From `position` the search goes on: upwards, or downwards below it. `bound` is how new, or old,
    what follows can be at most: records of several partitions are merged by it.
    """

    partition: int
    start: int
    end: int
    position: int
    bound: int

    def scanned(self, *, newest_first: bool) -> int:
        return self.end - self.position if newest_first else self.position - self.start


class Cursor(Struct, frozen=True):
    """A search, and how far it has come."""

    query: Query
    spans: list[Span]
    matches: int = 0
    """Records that were found so far."""

    @property
    def total(self) -> int:
        """Offsets to search. Compacted topics have fewer records than offsets."""
        return sum(each.end - each.start for each in self.spans)

    @property
    def scanned(self) -> int:
        newest_first = self.query.newest_first
        return sum(each.scanned(newest_first=newest_first) for each in self.spans)

    @property
    def is_done(self) -> bool:
        return self.scanned >= self.total


def begun(query: Query, ranges: dict[int, tuple[int, int]]) -> Cursor:
    """The cursor of a new search in these ranges of offsets, by partition."""
    spans = []
    for partition, (start, end) in sorted(ranges.items()):
        end = max(start, end)
        position, bound = (end, LARGEST) if query.newest_first else (start, -1)
        spans.append(Span(partition, start, end, position, bound))
    return Cursor(query, spans)


def token(cursor: Cursor) -> str:
    """The cursor in a URL."""
    return urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def cursor_of(text: str, topic: str) -> Cursor:
    """`ConfigError` if it is not one of this topic."""
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
