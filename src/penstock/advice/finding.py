"""A finding of `doctor`: what is wrong, since when, what it means, what to do."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    subject: str = ""
    """What it is about, if a check may find several."""
    since_ms: int | None = None
    """Wall time; None: not known."""


class Problems:
    """Remembers since when findings are there, for those who look again and again."""

    def __init__(self) -> None:
        self._since_ms: dict[tuple[str, str], int] = {}

    def seen(self, findings: Iterable[Finding], now_ms: int) -> list[Finding]:
        """The findings of now, each with the time when it was first seen, or of its own."""
        now = {(each.check, each.subject): each for each in findings}
        self._since_ms = {key: self._since_ms.get(key, now_ms) for key in now}
        return [
            replace(each, since_ms=self._since_ms[key]) if each.since_ms is None else each
            for key, each in now.items()
        ]


ORDER = list(Level)


def sorted_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first."""
    return sorted(findings, key=lambda each: ORDER.index(each.level))


def some(names: Iterable[object], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    texts = [str(each) for each in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
