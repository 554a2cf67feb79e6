"""Counts waiting records by how soon they are due. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from penstock.config.duration import DAY_MS, HOUR_MS, MINUTE_MS
from penstock.retry.pending import Pending

BOUNDS: Final = (
    ("overdue", 0),
    ("within_minute", MINUTE_MS),
    ("within_hour", HOUR_MS),
    ("within_day", DAY_MS),
)
LATER: Final = "later"


def due_counts(pending: Iterable[Pending], now_ms: int) -> dict[str, int]:
    """A count for each name in `BOUNDS`, and for `LATER`."""
    found = Counter(_when(each.due_ms - now_ms) for each in pending)
    return {name: found[name] for name in (*(name for name, _ in BOUNDS), LATER)}


def _when(ahead_ms: int) -> str:
    return next((name for name, bound_ms in BOUNDS if ahead_ms <= bound_ms), LATER)
