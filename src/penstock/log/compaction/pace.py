"""Limits the rate of the cleaning process: `log.cleaner.io.max.bytes.per.second`."""

import time
from collections.abc import Callable

from penstock.clock import Clock, SystemClock

STEP_MS = 20
"""Shorter pauses would be mostly overhead."""


class Pace:
    """Pauses whenever more was read and written than the rate allows."""

    def __init__(
        self,
        bytes_per_second: float,
        clock: Clock | None = None,
        rest: Callable[[float], object] = time.sleep,
    ) -> None:
        self._bytes_per_ms = bytes_per_second / 1000
        self._clock, self._rest = clock or SystemClock(), rest
        self._free_ms = float(self._clock.monotonic_ms())
        """The time at which the bytes so far are within the rate; pauses last until then."""

    def passed(self, size_bytes: int) -> None:
        now_ms = self._clock.monotonic_ms()
        self._free_ms = max(self._free_ms, now_ms) + size_bytes / self._bytes_per_ms
        ahead_ms = self._free_ms - now_ms
        if ahead_ms >= STEP_MS:
            self._rest(ahead_ms / 1000)
