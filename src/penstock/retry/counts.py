"""Counters of the delay service, for its metrics. No I/O."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

LATENESS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0)


@dataclass(slots=True)
class DelayCounts:
    """Counts since the process began, by delay or retry topic."""

    delivered: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    cancelled: Counter[str] = field(default_factory=Counter)
    postponed: Counter[str] = field(default_factory=Counter)
    """How often a record was postponed: neither the target nor the dead letters take it."""
    restarts: int = 0
    store_failures: int = 0
    lateness: list[int] = field(default_factory=lambda: [0] * (len(LATENESS_S) + 1))
    """Counts by bucket; the last bucket has everything above the highest bound."""
    lateness_sum_s: float = 0.0

    def late(self, late_ms: int) -> None:
        late_s = max(0, late_ms) / 1000
        self.lateness[bisect_left(LATENESS_S, late_s)] += 1
        self.lateness_sum_s += late_s
