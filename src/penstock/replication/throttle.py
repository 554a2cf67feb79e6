"""Limits the rate in bytes at which reassigned replicas are copied (KIP-73).

Only replicas that are listed and not in sync are throttled: one in sync must stay so.
"""

from collections.abc import Callable

EVERY = "*"
SAVED_MS = 100
"""Unused time that may be saved up: fetches take time, and timers are not exact."""


def is_listed(replicas: tuple[str, ...], partition: int, broker: int) -> bool:
    """Whether `…throttled.replicas` names this replica, or all."""
    return EVERY in replicas or f"{partition}:{broker}" in replicas


class Throttle:
    """A debt of bytes, paid off at the rate; some may be paid ahead. Belongs to the event loop.

    The rate is an argument because it can be altered at any time; the debt is then paid at the new
    rate.
    """

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._owed = 0
        """The debt in thousandths of bytes: the rate is per second, the clock in milliseconds."""
        self._paid_ms = monotonic_ms()

    def record(self, size_bytes: int, rate: int) -> None:
        self._pay(rate)
        self._owed += 1000 * size_bytes

    def delay_ms(self, rate: int, most_ms: int) -> int:
        """How long to wait until the debt is paid, rounded down, at most `most_ms`."""
        self._pay(rate)
        if rate == 0:
            return most_ms if self._owed > 0 else 0
        return min(max(0, self._owed // rate), most_ms)

    def _pay(self, rate: int) -> None:
        now_ms = self._monotonic_ms()
        paid = rate * (now_ms - self._paid_ms)
        self._owed, self._paid_ms = max(-SAVED_MS * rate, self._owed - paid), now_ms
