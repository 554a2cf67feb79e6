"""The last rebalances of each group, which tell operators why their consumers paused."""

from collections import deque

import msgspec

HISTORY_LENGTH = 20


class Rebalance(msgspec.Struct, frozen=True):
    """A rebalance, from its cause until the new generation was stable or the group empty."""

    generation: int
    reason: str
    members: int
    duration_ms: int
    ended_ms: int
    """Wall time."""


class UnderWay(msgspec.Struct, frozen=True):
    """A rebalance that has not ended yet."""

    reason: str
    for_ms: int


class Rebalances(msgspec.Struct, frozen=True):
    """The last rebalances of a group, oldest first, as the HTTP page shows them."""

    group: str
    rebalances: tuple[Rebalance, ...]
    under_way: UnderWay | None


REASON_LENGTH = 300


def with_reason(reason: str, another: str) -> str:
    """Both reasons; if there are very many, the first ones, which caused the rebalance."""
    if not reason:
        return another[:REASON_LENGTH]
    if not another or reason.endswith("…"):
        return reason
    both = f"{reason}, {another}"
    return both if len(both) <= REASON_LENGTH else f"{reason}, …"


class RebalanceLog:
    """The newest rebalances of every group. In memory only: a new coordinator starts empty."""

    def __init__(self) -> None:
        self._by_group: dict[str, deque[Rebalance]] = {}

    def add(self, group: str, rebalance: Rebalance) -> None:
        self._by_group.setdefault(group, deque(maxlen=HISTORY_LENGTH)).append(rebalance)

    def of(self, group: str) -> tuple[Rebalance, ...]:
        """Oldest first."""
        return tuple(self._by_group.get(group, ()))

    def forget(self, group: str) -> None:
        self._by_group.pop(group, None)
