"""Decides when a process that died is restarted. Pure: time is an argument."""

from typing import NamedTuple

STEADY_MS = 10_000
"""A process that ran for this long did not fail at its start."""
DELAYS_MS = (0, 100, 200, 400, 800, 5_000, 30_000)
LOOP = 5
"""This many quick deaths in a row count as a loop."""


class ProcessRestart(NamedTuple):
    """The delay of the next start, and how often in a row the process died soon after a start."""

    delay_ms: int
    quick_deaths: int

    @property
    def is_loop(self) -> bool:
        return self.quick_deaths >= LOOP


def restart(ran_ms: int, quick_deaths: int) -> ProcessRestart:
    """Restart at once the first time, then after growing delays, so that a failing process costs
    the others little.
    """
    deaths = 1 if ran_ms >= STEADY_MS else quick_deaths + 1
    return ProcessRestart(DELAYS_MS[min(deaths, len(DELAYS_MS)) - 1], deaths)
