"""In-sync set changes that a leader proposes to the controller (AlterPartition, KIP-497).

The controller writes a proposal if partition epoch and leader epoch are still current, and
`isr_proposals.settle` applies the result. A set that the cluster already has is accepted at any
partition epoch: a response may get lost, and the leader retries.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid


class InSyncReplica(Struct, frozen=True):
    """A member of a proposed set, with the broker epoch in which it caught up (KIP-903)."""

    broker: int
    broker_epoch: int = -1


class IsrProposal(Struct, frozen=True):
    """The in-sync set that a leader wants, on top of `partition_epoch`."""

    topic_partition: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSyncReplica, ...]


class Accepted(Struct, frozen=True):
    """The controller has written the set, or already had it: this is the state now."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Rejected(Struct, frozen=True):
    """The controller did not write the set, or the outcome is unknown."""

    code: ErrorCode


Settlement: TypeAlias = Accepted | Rejected

NOT_DONE: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller knows the epochs and did not write: the old state certainly holds."""

OUTDATED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NEW_LEADER_ELECTED})
"""A newer leader epoch is written, and the controller sends it. Until then the proposal counts as
pending, since an earlier attempt may have been written.

After any other refusal the leader proposes again, where Kafka waits for UNKNOWN_TOPIC_ID and the
like. A controller that was deposed, or is about to be, knows less than the next one, and the next
one has nothing new to send to the leader of an epoch that has not changed.
"""
