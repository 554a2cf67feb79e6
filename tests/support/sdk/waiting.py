"""Wait for a condition, by default for as long as a slow machine may need."""

from collections.abc import Callable

from peers import process

WAIT_S = 30


def wait_until(condition: Callable[[], bool], what: str, wait_s: float = WAIT_S) -> None:
    process.wait_until(condition, wait_s, what)
