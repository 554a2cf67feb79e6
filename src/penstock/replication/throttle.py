"""How fast replicas are copied that an operator moves: a rate of bytes for all of them (KIP-73).

Only replicas that are listed and not in sync are held back: one that has caught up must keep up.
"""

from collections.abc import Callable

EVERY = "*"
SAVED_MS = 100
"""So much rest is saved up: a fetch takes its time, and nobody wakes to the millisecond."""


def is_listed(replicas: tuple[str, ...], partition: int, broker: int) -> bool:
    """Whether `…throttled.replicas` names this replica, or all."""
    return EVERY in replicas or f"{partition}:{broker}" in replicas


class Throttle:
    """A debt of bytes that is paid off at the rate; some is paid ahead. Belongs to the event loop.

    The rate is an argument, since it can be altered at any time: what is owed is paid at the new.
    """

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._owed = 0
        """Thousandths of bytes: the rate is by the second, the clock by the millisecond."""
        self._paid_ms = monotonic_ms()

    def passed(self, size_bytes: int, rate: int) -> None:
        self._pay(rate)
        self._owed += 1000 * size_bytes

    def owes_ms(self, rate: int, most_ms: int) -> int:
        """How long what has passed takes at the rate, up to `most_ms`; less than one is nothing."""
        self._pay(rate)
        if rate == 0:
            return most_ms if self._owed > 0 else 0
        return min(max(0, self._owed // rate), most_ms)

    def _pay(self, rate: int) -> None:
        now_ms = self._monotonic_ms()
        paid = rate * (now_ms - self._paid_ms)
        self._owed, self._paid_ms = max(-SAVED_MS * rate, self._owed - paid), now_ms
