"""The lag of each group over the last hour, in arrays of numbers to be small for
thousands of groups.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, nan

KEPT = 720
"""How many looks are kept: one hour at one look every 5 s."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart; the value None means unknown."""

    at_ms: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a group at one look; `seconds` is None if the next record's time is unknown."""

    group: str
    records: int
    seconds: float | None


class _Series:
    """Three columns: time, records, seconds."""

    def __init__(self) -> None:
        self.columns = (array("d"), array("d"), array("d"))

    def append(self, *values: float) -> None:
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)
            if len(column) > KEPT:
                del column[0]

    def points(self, index: int) -> list[Point]:
        return [
            Point(int(at), None if isnan(value) else value)
            for at, value in zip(self.columns[0], self.columns[index], strict=True)
        ]


class LagHistory:
    """The lag charts of all groups. A group that never lagged takes no memory."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._last_ms = 0

    def add(self, at_ms: int, lags: Iterable[Lag]) -> None:
        """Add one look. Groups that are not in it are forgotten."""
        kept: dict[str, _Series] = {}
        for each in lags:
            series = self._series.get(each.group)
            if series is None:
                if not each.records:
                    continue
                series = _Series()
            seconds = nan if each.seconds is None else each.seconds
            series.append(at_ms, each.records, seconds)
            kept[each.group] = series
        self._series, self._last_ms = kept, at_ms

    def records(self, group: str) -> list[Point]:
        return self._points(group, 1)

    def seconds(self, group: str) -> list[Point]:
        return self._points(group, 2)

    def _points(self, group: str, index: int) -> list[Point]:
        series = self._series.get(group)
        return [Point(self._last_ms, 0.0)] if series is None else series.points(index)
