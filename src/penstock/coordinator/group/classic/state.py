"""The states of a classic group, and the transitions between them."""

from collections.abc import Mapping
from enum import Enum


class ClassicGroupState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    """No members; perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The join phase: members are joining."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader assigns the partitions."""
    STABLE = "Stable"
    """The leader has assigned the partitions."""
    DEAD = "Dead"
    """The group is gone."""


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicGroupState

TRANSITIONS: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset(),
}
"""The states that may follow each state."""
