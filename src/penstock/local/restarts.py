"""When a process that died is started again. Pure: time is an argument."""

from typing import NamedTuple

STEADY_MS = 10_000
"""Whoever has run for so long did not die of its start."""
DELAYS_MS = (0, 100, 200, 400, 800, 5_000, 30_000)
LOOP = 5
"""So many quick deaths in a row are a loop."""


class ProcessRestart(NamedTuple):
    """The next start, and how often in a row the process has died soon after one."""

    delay_ms: int
    quick_deaths: int

    @property
    def is_loop(self) -> bool:
        return self.quick_deaths >= LOOP


def restart(ran_ms: int, quick_deaths: int) -> ProcessRestart:
    """At once the first time, then after growing delays: a process that cannot live costs the
    others little.
    """
    deaths = 1 if ran_ms >= STEADY_MS else quick_deaths + 1
    return ProcessRestart(DELAYS_MS[min(deaths, len(DELAYS_MS)) - 1], deaths)
