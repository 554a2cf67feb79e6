"""A finding of `doctor`: what is wrong, since when, what it means, what to do."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem."""

    level: Level
    check: str
    """The name of the check, for programs."""
    what: str
    meaning: str
    advice: str
    subject: str = ""
    """What the finding is about, if a check can have several."""
    since_ms: int | None = None
    """Wall time; None: unknown."""


class Problems:
    """Remembers since when findings exist, for repeated checks."""

    def __init__(self) -> None:
        self._since_ms: dict[tuple[str, str], int] = {}

    def seen(self, findings: Iterable[Finding], now_ms: int) -> list[Finding]:
        """The current findings, each with its own time or the time when it was first seen."""
        now = {(each.check, each.subject): each for each in findings}
        self._since_ms = {key: self._since_ms.get(key, now_ms) for key in now}
        return [
            replace(each, since_ms=self._since_ms[key]) if each.since_ms is None else each
            for key, each in now.items()
        ]


ORDER = list(Level)


def sorted_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The most severe first."""
    return sorted(findings, key=lambda each: ORDER.index(each.level))


def some(names: Iterable[object], most: int = 5) -> str:
    """The first few names, and the number of the others."""
    texts = [str(each) for each in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
