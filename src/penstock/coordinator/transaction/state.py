"""The states of a transactional id, and the ways between them."""

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """By the names that clients see."""

    EMPTY = "Empty"
    """A producer has come; it has written nothing yet."""
    ONGOING = "Ongoing"
    """Partitions take part, and nothing is decided."""
    PREPARE_COMMIT = "PrepareCommit"
    """Decided; participants are being told."""
    PREPARE_ABORT = "PrepareAbort"
    """Decided; participants are being told."""
    COMPLETE_COMMIT = "CompleteCommit"
    """Every participant knows."""
    COMPLETE_ABORT = "CompleteAbort"
    """Every participant knows."""
    DEAD = "Dead"
    """The id has not been used for long and is forgotten."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Kafka passes through it in memory when it shuts a producer out; it is in no record."""

    @property
    def number(self) -> int:
        """As records spell it."""
        return _NUMBERS[self]

    @property
    def is_decided(self) -> bool:
        """Markers have to be written."""
        return self is State.PREPARE_COMMIT or self is State.PREPARE_ABORT

    @property
    def is_at_rest(self) -> bool:
        """No transaction is open."""
        return self in {State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}


_NUMBERS = {state: number for number, state in enumerate(State)}
BY_NUMBER: Mapping[int, State] = dict(enumerate(State))

_AFTER_REST = frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD})

TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.EMPTY: _AFTER_REST,
    State.ONGOING: frozenset(
        {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT, State.PREPARE_EPOCH_FENCE}
    ),
    State.PREPARE_COMMIT: frozenset({State.COMPLETE_COMMIT}),
    State.PREPARE_ABORT: frozenset({State.COMPLETE_ABORT}),
    State.COMPLETE_COMMIT: _AFTER_REST,
    State.COMPLETE_ABORT: _AFTER_REST,
    State.DEAD: frozenset(),
    State.PREPARE_EPOCH_FENCE: frozenset({State.PREPARE_ABORT}),
}
"""Where a transactional id may go from each state. Once decided, a transaction has one way only.

At rest it may be aborted, since a producer may have begun without the coordinator's knowledge
(KIP-890): the abort then only raises its epoch.
"""
