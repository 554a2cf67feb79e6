"""How long to wait before asking again (KIP-580): doubling, with a fifth of chance."""

FIRST_MS = 100
MAX_MS = 1_000
JITTER = 0.2


def backoff_ms(failures: int, chance: float) -> float:
    """The wait after so many failures; `chance` is in [0, 1)."""
    doubled = min(FIRST_MS * 2.0 ** min(failures - 1, 16), MAX_MS)
    return doubled * (1 - JITTER + 2 * JITTER * chance)
