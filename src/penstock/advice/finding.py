"""A finding of `doctor`: what is wrong, what it means, what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    level: Level
    check: str
    """Name of the check, for programs."""
    what: str
    meaning: str
    advice: str


ORDER = list(Level)


def sorted_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first."""
    return sorted(findings, key=lambda each: ORDER.index(each.level))


def some(names: Iterable[object], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    texts = [str(each) for each in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
