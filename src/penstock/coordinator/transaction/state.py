"""The states of a transactional id, and the transitions between them."""

from collections.abc import Mapping
from enum import Enum


class TransactionState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    """A producer has initialised; no transaction is open."""
    ONGOING = "Ongoing"
    """A transaction is open and has partitions."""
    PREPARE_COMMIT = "PrepareCommit"
    """Decided; markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    """Decided; markers are being written."""
    COMPLETE_COMMIT = "CompleteCommit"
    """Every partition has its marker."""
    COMPLETE_ABORT = "CompleteAbort"
    """Every partition has its marker."""
    DEAD = "Dead"
    """The id has expired."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Kafka has it in memory while it fences a producer; it is in no record."""

    @property
    def number(self) -> int:
        """The state's number in records."""
        return _NUMBERS[self]

    @property
    def is_decided(self) -> bool:
        """Markers have to be written."""
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT

    @property
    def is_at_rest(self) -> bool:
        """No transaction is open."""
        return self in {
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        }


_NUMBERS = {state: number for number, state in enumerate(TransactionState)}
BY_NUMBER: Mapping[int, TransactionState] = dict(enumerate(TransactionState))

_AFTER_REST = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
        TransactionState.DEAD,
    }
)

TRANSITIONS: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _AFTER_REST,
    TransactionState.ONGOING: frozenset(
        {
            TransactionState.ONGOING,
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_ABORT,
            TransactionState.PREPARE_EPOCH_FENCE,
        }
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.COMPLETE_COMMIT: _AFTER_REST,
    TransactionState.COMPLETE_ABORT: _AFTER_REST,
    TransactionState.DEAD: frozenset(),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.PREPARE_ABORT}),
}
"""The states that may follow each state. A decided transaction has one way only.

An id at rest may be aborted, since a producer may have begun a transaction without the
coordinator's knowledge (KIP-890): the abort then only bumps its epoch.
"""
