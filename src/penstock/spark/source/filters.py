"""Filters that need no decoding: on partition, offset, topic and timestamp.

Spark pushes down a conjunction of simple comparisons. Those understood here narrow the offset
ranges; Spark need not evaluate again those that the ranges decide completely.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, TypeVar

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from penstock.spark.options import MAX_INT64, MIN_INT64
from penstock.spark.source.ranges import OffsetRange

_NEVER_NULL: Final = ("topic", "partition", "offset", "timestamp", "timestampType")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

T = TypeVar("T")
Span: TypeAlias = tuple[int, int]
"""The first and the last integer that pass, both included."""
_ALL: Final[Span] = (MIN_INT64, MAX_INT64)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The part of a read that passes its filters."""

    partition: Span = _ALL
    offset: Span = _ALL
    time_ms: Span = _ALL
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    """None: all."""

    def narrowed(self, whole: OffsetRange) -> OffsetRange:
        """The part of the range that may pass, possibly empty."""
        low, high = self.partition
        chosen = low <= whole.topic_partition.partition <= high
        chosen &= self.topics is None or whole.topic_partition.topic in self.topics
        chosen &= self.partitions is None or whole.topic_partition.partition in self.partitions
        start = max(whole.start, self.offset[0])
        end = min(whole.end, self.offset[1] + 1) if chosen else start
        return replace(whole, start=start, end=max(start, end))


def pushed(filters: Iterable[Filter]) -> tuple[Narrowing, list[Filter]]:
    """The part of the read that passes, and the filters that Spark must still evaluate."""
    narrowing = Narrowing()
    left: list[Filter] = []
    for each in filters:
        found = _applied(narrowing, each)
        if found is None:
            left.append(each)
        else:
            narrowing, decided = found
            if not decided:
                left.append(each)
    return narrowing, left


def _applied(narrowing: Narrowing, each: Filter) -> tuple[Narrowing, bool] | None:
    """The narrowing with this filter, and whether it decides the filter; None: not understood."""
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    if len(attribute) != 1:
        return None
    column = attribute[0]
    if isinstance(each, IsNotNull):
        return (narrowing, True) if column in _NEVER_NULL else None
    if column == "topic":
        names = _among(each, str)
        return None if names is None else (_of_topics(narrowing, names), True)
    if column == "partition" and isinstance(each, In):
        numbers = _among(each, int)
        return None if numbers is None else (_of_partitions(narrowing, numbers), True)
    span = _span(each, _micros if column == "timestamp" else _whole)
    if span is None:
        return None
    if column == "partition":
        return replace(narrowing, partition=_both(narrowing.partition, span)), True
    if column == "offset":
        return replace(narrowing, offset=_both(narrowing.offset, span)), True
    if column == "timestamp":
        # Spark must check again: timestamps beyond its range are read as its last timestamp.
        return replace(narrowing, time_ms=_both(narrowing.time_ms, _milliseconds(span))), False
    return None


def _of_topics(narrowing: Narrowing, names: frozenset[str]) -> Narrowing:
    before = narrowing.topics
    return replace(narrowing, topics=names if before is None else before & names)


def _of_partitions(narrowing: Narrowing, numbers: frozenset[int]) -> Narrowing:
    before = narrowing.partitions
    return replace(narrowing, partitions=numbers if before is None else before & numbers)


def _among(each: Filter, kind: type[T]) -> frozenset[T] | None:
    """The values that the column may have, if all have this type."""
    match each:
        case In(value=values):
            pass
        case EqualTo(value=value) | EqualNullSafe(value=value):
            values = (value,)
        case _:
            return None
    return frozenset(values) if all(type(value) is kind for value in values) else None


def _span(each: Filter, number: Callable[[object], int | None]) -> Span | None:
    value = number(getattr(each, "value", None))
    if value is None:
        return None
    match each:
        case EqualTo() | EqualNullSafe():
            return value, value
        case GreaterThan():
            return value + 1, MAX_INT64
        case GreaterThanOrEqual():
            return value, MAX_INT64
        case LessThan():
            return MIN_INT64, value - 1
        case LessThanOrEqual():
            return MIN_INT64, value
        case _:
            return None


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _micros(value: object) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)


def _milliseconds(micros: Span) -> Span:
    """An open side stays open: records may have timestamps beyond 64-bit microseconds."""
    low, high = micros
    return (
        low if low == MIN_INT64 else -(-low // 1000),
        high if high == MAX_INT64 else high // 1000,
    )


def _both(one: Span, other: Span) -> Span:
    return max(one[0], other[0]), min(one[1], other[1])
