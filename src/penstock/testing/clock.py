"""A clock that moves only when the test advances it.

    clock = ManualClock()
    consumer = Consumer(config, ["orders"], commit=AsyncCommit(every_ms=1_000), clock=clock)
    clock.advance(1_000)

The clients of `penstock.sdk` use it for their timeouts: commits, retries in place, and waiting for
space in a producer's queue. librdkafka's own timeouts use real time.
"""


class ManualClock:
    """Wall and monotonic time in milliseconds; both stand still until `advance`."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms, self._monotonic_ms = now_ms, 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._monotonic_ms += ms
