"""Changes of an in-sync set on their way to the controller and back (AlterPartition, KIP-497).

A leader proposes; the controller writes, if partition epoch and leader epoch are still those that
the leader knows. What comes back is applied by `Partition.settle`. A set that is already the
cluster's is accepted at any partition epoch: an answer may get lost, and the leader asks again.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid


class InSyncReplica(Struct, frozen=True):
    """A member of a proposed set, in the life in which the leader saw it catch up (KIP-903)."""

    broker: int
    broker_epoch: int = -1


class IsrProposal(Struct, frozen=True):
    """The in-sync set that a leader wants, if nothing has changed since `partition_epoch`."""

    where: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSyncReplica, ...]


class Accepted(Struct, frozen=True):
    """The controller has written it, or found it so: this is the state now."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Rejected(Struct, frozen=True):
    """The controller did not write it, or nobody knows."""

    code: ErrorCode


Settlement: TypeAlias = Accepted | Rejected

NOT_DONE: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""Said by a controller that knows the epochs and did not write: the old state holds for sure."""

OUTDATED: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The controller knows more than the leader, and its next word is on its way. Until it comes the
proposal counts as pending, since an earlier attempt at it may have been written."""
