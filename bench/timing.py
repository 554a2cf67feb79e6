"""How long a call takes, for benches without a broker."""

from collections.abc import Callable
from timeit import repeat

ROUNDS = 5
ROUND_S = 0.02


def best_s(call: Callable[[], object]) -> float:
    """Seconds per call in the fastest of a few rounds, each long enough for the timer."""
    once_s = min(repeat(call, number=1, repeat=3))
    number = max(1, int(ROUND_S / once_s))
    return min(repeat(call, number=number, repeat=ROUNDS)) / number
