"""The delay of the event loop: how long a request waits while others are handled."""

import asyncio
from collections import deque

from penstock.clock import Clock

INTERVAL_MS = 100
KEPT = 600
"""Measurements of the last minute."""


class LoopLag:
    """The greatest delay of a timer within the last minute. Belongs to the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late_ms: deque[int] = deque(maxlen=KEPT)

    @property
    def greatest_ms(self) -> int:
        return max(self._late_ms, default=0)

    def waited(self, ms: int) -> None:
        """Note a wait that should have lasted `INTERVAL_MS`."""
        self._late_ms.append(max(0, ms - INTERVAL_MS))

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            before_ms = self._clock.monotonic_ms()
            await asyncio.sleep(INTERVAL_MS / 1000)
            self.waited(self._clock.monotonic_ms() - before_ms)
