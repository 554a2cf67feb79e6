"""The usage of one limit by the clients that share it. Pure."""

from heapq import heappop, heappush

from penstock.broker.quotas.rate import Rate
from penstock.broker.quotas.token_bucket import TokenBucket


class Meter:
    """A limit, and the rate measured against it."""

    def __init__(self, bound: float, samples: int, window_s: int) -> None:
        self.bound = bound
        self.window_ms = window_s * 1000
        self.most_in_window = max(samples - 1, 1) * window_s
        """The seconds' worth of quota that a client may use at once."""
        self.rate = Rate(samples, self.window_ms)
        self.bucket = TokenBucket(samples, window_s)
        """Used by controller mutations only."""
        self._delays = Rate(samples, self.window_ms)
        self._delayed = Rate(samples, self.window_ms)
        self._ends_ms: list[int] = []
        """When throttled clients may go on, as a heap."""

    def throttle_ms(self, value: float, now_ms: int) -> int:
        """Record a value; returns the client's throttle time."""
        self.rate.record(value, now_ms)
        return self.rate.throttle_ms(self.bound, now_ms)

    def delayed(self, delay_ms: int, now_ms: int) -> None:
        """Note that a client was throttled."""
        self._delays.record(delay_ms, now_ms)
        self._delayed.record(1, now_ms)
        self.held(now_ms)
        heappush(self._ends_ms, now_ms + delay_ms)

    def held(self, now_ms: int) -> int:
        """How many clients are throttled now."""
        while self._ends_ms and self._ends_ms[0] <= now_ms:
            heappop(self._ends_ms)
        return len(self._ends_ms)

    def mean_delay_ms(self, now_ms: int) -> float:
        count = self._delayed.per_second(now_ms)
        return self._delays.per_second(now_ms) / count if count else 0.0

    def is_idle(self, now_ms: int) -> bool:
        """Whether it holds no usage: a new meter would decide the same."""
        full = self.bucket.tokens(self.bound, now_ms) >= self.bucket.burst(self.bound)
        return full and self.rate.is_idle(now_ms) and self._delayed.is_idle(now_ms)
