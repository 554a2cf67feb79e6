"""Exponential backoff between retries, with 20 % jitter (KIP-580)."""

FIRST_MS = 100
MAX_MS = 1_000
JITTER = 0.2


def backoff_ms(failures: int, chance: float) -> float:
    """The wait after this many failures; `chance`, in [0, 1), sets the jitter."""
    doubled = min(FIRST_MS * 2.0 ** min(failures - 1, 16), MAX_MS)
    return doubled * (1 - JITTER + 2 * JITTER * chance)
