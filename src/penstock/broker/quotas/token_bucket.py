"""A token bucket, refilled at a rate up to a burst: controller mutations (KIP-599). Pure."""

from math import floor

from penstock.broker.quotas.rate import LONGEST_MS


class TokenBucket:
    """Full at first. May go below zero for requests that are not refused; others then wait."""

    def __init__(self, samples: int, window_s: int) -> None:
        self._burst_s = samples * window_s
        self._tokens: float | None = None
        self._since_ms = 0

    def burst(self, limit: float) -> float:
        return self._burst_s * limit

    def tokens(self, limit: float, now_ms: int) -> float:
        burst = self.burst(limit)
        if self._tokens is None:
            self._tokens = burst
        else:
            earned = (now_ms - self._since_ms) / 1000 * limit
            self._tokens = min(burst, self._tokens + earned)
        self._since_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens; a negative count returns them."""
        self._tokens = min(self.burst(limit), self.tokens(limit, now_ms) - count)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long until the balance is not negative."""
        wait_ms = max(-self.tokens(limit, now_ms), 0) / limit * 1000
        return floor(min(wait_ms, LONGEST_MS) + 0.5)
