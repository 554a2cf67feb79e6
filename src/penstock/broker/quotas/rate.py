"""A rate over the last windows, and how long to wait until it is within a limit (KIP-13). Pure.

Kafka's arithmetic: each sample covers one window, and the samples of the last `samples` windows
count. Until that many have passed, the rate is taken over a time as if all windows but the current
one had.
"""

from collections import deque
from math import floor
from typing import Final

LONGEST_MS: Final = 2**31 - 1
"""The longest wait that a response can carry."""


class RateSample:
    """The values of one window. It ends with the first event after its time."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = self.last_ms = start_ms
        self.value = 0.0


class Rate:
    """Values per second. Times are arguments, and never go back."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._window_ms = window_ms
        self._full_windows = samples - 1
        self._life_ms = samples * window_ms
        self._samples: deque[RateSample] = deque()
        self._past = 0.0
        """The sum of all samples but the last one."""

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._window_ms:
            self._forget(now_ms)  # here too: the rate may never be read
            samples.append(RateSample(now_ms))
            self._sum_past()
        current = samples[-1]
        current.value += value
        current.last_ms = now_ms

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[0].last_ms < self._life_ms:
            return
        while samples and now_ms - samples[0].last_ms >= self._life_ms:
            samples.popleft()
        self._sum_past()

    def _sum_past(self) -> None:
        """Sum again instead of subtracting, so that dropped samples leave no rounding error."""
        total, last = 0.0, len(self._samples) - 1
        for at, sample in enumerate(self._samples):
            if at < last:
                total += sample.value
        self._past = total

    def window_ms(self, now_ms: int) -> int:
        """The time span of the rate."""
        self._forget(now_ms)
        elapsed_ms = now_ms - self._samples[0].start_ms if self._samples else 0
        missing = self._full_windows - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)

    def per_second(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)
        samples = self._samples
        total = self._past + samples[-1].value if samples else 0.0
        return total * 1000 / window_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to record nothing until the rate is within the limit; 0 if it is."""
        observed = self.per_second(now_ms)
        if observed <= limit:
            return 0
        wait_ms = (observed - limit) / limit * self.window_ms(now_ms)
        return floor(min(wait_ms, LONGEST_MS) + 0.5)

    def is_idle(self, now_ms: int) -> bool:
        self._forget(now_ms)
        return not self._samples
