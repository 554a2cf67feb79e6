"""Figures of several rounds as a table of medians, Penstock's beside Kafka's."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

NAMES = ("Penstock", "Kafka")


@dataclass(slots=True)
class Row:
    """One figure of one workload: each broker's samples, and the aim for their ratio.

    An aim with a unit, such as "<= 5 ms", is for Penstock's own figure.
    """

    workload: str
    figure: str
    aim: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)

    def median(self, subject: str) -> float | None:
        return median(self.samples[subject]) if self.samples.get(subject) else None

    @property
    def aims_at_ratio(self) -> bool:
        return len(self.aim.split()) < 3

    @property
    def ratio(self) -> float | None:
        if not self.aims_at_ratio:
            return None
        ours, theirs = (self.median(name) for name in NAMES)
        return None if ours is None or not theirs else ours / theirs

    @property
    def is_missed(self) -> bool:
        value = self.ratio if self.aims_at_ratio else self.median(NAMES[0])
        return value is not None and is_missed(value, self.aim)


def is_missed(value: float, aim: str) -> bool:
    """Whether the value misses the aim: a sign, a number and perhaps a unit, or empty."""
    if not aim:
        return False
    sign, limit = aim.split()[:2]
    return value > float(limit) if sign == "<=" else value < float(limit)


class Report:
    """Rows in the order in which they first appeared."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}

    def add(
        self,
        workload: str,
        subject: str,
        figures: Mapping[str, float],
        aims: Mapping[str, str] | None = None,
    ) -> None:
        for figure, value in figures.items():
            row = self._rows.setdefault(
                (workload, figure), Row(workload, figure, (aims or {}).get(figure, ""))
            )
            row.samples.setdefault(subject, []).append(value)

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def text(self) -> str:
        head = ("workload", "figure", *NAMES, "ratio", "aim")
        return aligned([head, *(_cells(row) for row in self.rows)])

    def keep(self, out: Path | None, **also: object) -> None:
        """Write the rows to this file, if there is one, with what else belongs to them."""
        if out is not None:
            out.write_text(json.dumps({**also, "rows": self.jsonable()}, indent=1) + "\n")

    def jsonable(self) -> list[dict[str, object]]:
        return [
            {
                "workload": row.workload,
                "figure": row.figure,
                "medians": {name: row.median(name) for name in NAMES},
                "ratio": row.ratio,
                "aim": row.aim,
                "samples": row.samples,
            }
            for row in self.rows
        ]


def rows_of(table: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of a report that was stored as JSON."""
    return [Row(each["workload"], each["figure"], each["aim"], each["samples"]) for each in table]


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    if row.is_missed:
        ratio = f"{ratio} missed".strip()
    shown = (rounded(row.median(name)) for name in NAMES)
    return (row.workload, row.figure, *shown, ratio, row.aim)


def rounded(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"


def aligned(lines: Sequence[Iterable[str]]) -> str:
    """Lines in columns; the first two are aligned to the left, the others to the right."""
    table = [list(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )
