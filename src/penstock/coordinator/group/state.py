"""The states of a classic group, and the ways between them."""

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """By the names that clients see."""

    EMPTY = "Empty"
    """No members; perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader shares the partitions out."""
    STABLE = "Stable"
    """Every member knows its share."""
    DEAD = "Dead"
    """The group is gone."""


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE, State.DEAD}),
    State.PREPARING_REBALANCE: frozenset({State.COMPLETING_REBALANCE, State.EMPTY, State.DEAD}),
    State.COMPLETING_REBALANCE: frozenset({State.STABLE, State.PREPARING_REBALANCE, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING_REBALANCE, State.DEAD}),
    State.DEAD: frozenset(),
}
"""Where a group may go from each state."""
