"""Kafka's metadata is eventually consistent: waiting for the expected value."""

from collections.abc import Callable
from typing import TypeVar

from clients.protocol import RefusedError
from peers.process import wait_until

T = TypeVar("T")


def settled(read: Callable[[], T], wanted: T) -> T:
    """Repeats `read` until it returns `wanted`; returns the last value if it never does."""
    last: list[T | RefusedError] = []

    def matches() -> bool:
        last.clear()
        try:
            last.append(read())
        except RefusedError as refused:
            last.append(refused)
        return last == [wanted]

    try:
        wait_until(matches, 5, "the cluster to settle")
    except TimeoutError:
        if isinstance(last[0], RefusedError):
            raise last[0] from None
    assert not isinstance(last[0], RefusedError)
    return last[0]
