"""The last rebalances of each group, for people who ask why their consumers paused."""

from collections import deque

import msgspec

KEPT = 20


class Rebalance(msgspec.Struct, frozen=True):
    """A rebalance from its cause until the generation that it led to was stable, or empty."""

    generation: int
    reason: str
    members: int
    duration_ms: int
    ended_ms: int
    """Wall time."""


class RebalanceLog:
    """The newest rebalances of every group. Kept in memory: a new coordinator starts anew."""

    def __init__(self) -> None:
        self._by_group: dict[str, deque[Rebalance]] = {}

    def add(self, group: str, rebalance: Rebalance) -> None:
        self._by_group.setdefault(group, deque(maxlen=KEPT)).append(rebalance)

    def of(self, group: str) -> tuple[Rebalance, ...]:
        """Oldest first."""
        return tuple(self._by_group.get(group, ()))

    def forget(self, group: str) -> None:
        self._by_group.pop(group, None)
