"""The delay of the event loop, and its idle time: how long a request waits behind others."""

import asyncio
from collections import deque
from time import thread_time_ns

from penstock.clock import Clock

INTERVAL_MS = 100
KEPT = 600
"""Measurements of the last minute."""


class LoopLag:
    """The greatest delay of a timer within the last minute. Belongs to the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late_ms: deque[int] = deque(maxlen=KEPT)
        self._waited_ms: deque[int] = deque(maxlen=KEPT)
        self._busy_ns: deque[int] = deque(maxlen=KEPT)

    @property
    def greatest_ms(self) -> int:
        return max(self._late_ms, default=0)

    @property
    def idle(self) -> float:
        """Share of the last minute for which the loop's thread did not run."""
        if not self._waited_ms:
            return 1.0
        return max(1 - sum(self._busy_ns) / 1e6 / max(sum(self._waited_ms), 1), 0.0)

    def waited(self, ms: int, busy_ns: int = 0) -> None:
        """Note a wait that should have lasted `INTERVAL_MS`, and the thread's CPU time in it."""
        self._late_ms.append(max(0, ms - INTERVAL_MS))
        self._waited_ms.append(ms)
        self._busy_ns.append(busy_ns)

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            before_ms, busy_ns = self._clock.monotonic_ms(), thread_time_ns()
            await asyncio.sleep(INTERVAL_MS / 1000)
            self.waited(self._clock.monotonic_ms() - before_ms, thread_time_ns() - busy_ns)
