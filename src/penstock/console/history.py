"""Lag of the last hour, of thousands of groups: numbers in arrays, not objects."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, nan

KEPT = 720
"""Looks that are remembered: an hour."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a chart; None: not known."""

    at_ms: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Lag:
    """Of a group at one look; seconds are None if the time of its next record is not known."""

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
    """Groups that never lagged take no room."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._last_ms = 0

    def add(self, at_ms: int, lags: Iterable[Lag]) -> None:
        """One look: groups that are not in it are forgotten."""
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
