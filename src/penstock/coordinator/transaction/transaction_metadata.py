"""The state of a transactional id: its producer, and its transaction if one is open."""

import msgspec

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    ProducerFenced,
)
from penstock.coordinator.transaction.state import TRANSITIONS, TransactionState
from penstock.types import TopicPartition

NONE = -1
LAST_EPOCH = 2**15 - 1
"""Never given to a producer: it serves to fence the producer of the epoch before."""

EPOCH_BUMP_VERSION = 2
"""From this `transaction.version` on, every transaction bumps the epoch (KIP-890)."""


class TransactionMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """One transactional id as of its last record; immutable. Times are wall times."""

    producer_id: int
    producer_epoch: int = NONE
    last_producer_epoch: int = NONE
    """The previous epoch, whose owner may have missed the new one. It is in no record."""
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    """Set when epochs have run out: the producer has it, and uses it for its next transaction."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NONE
    updated_ms: int = NONE
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH - 1

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The identity that may begin the next transaction."""
        if self.next_producer_id != NONE:
            return ProducerIdAndEpoch(self.next_producer_id, 0)
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    def transitioned(
        self, state: TransactionState, now_ms: int, **changes: object
    ) -> "TransactionMetadata":
        assert state in TRANSITIONS[self.state], f"{self.state} cannot become {state}"
        return msgspec.structs.replace(self, state=state, updated_ms=now_ms, **changes)

    def check(self, producer: ProducerIdAndEpoch) -> None:
        """Refuse all but the current producer, and that one too while markers are being written.

        The producer may already have its next id, from the response to its commit.
        """
        if self.state.is_decided and producer == self.producer:
            raise ConcurrentTransactions("the transaction's markers are being written")
        if producer.id != self.producer_id:
            raise InvalidProducerIdMapping(f"the producer is {self.producer_id}, not {producer.id}")
        if producer.epoch != self.producer_epoch:
            raise ProducerFenced(f"epoch {producer.epoch} is not the current {self.producer_epoch}")
        if self.state.is_decided:
            raise ConcurrentTransactions("the transaction's markers are being written")

    def with_partitions(
        self, added: frozenset[TopicPartition], now_ms: int, client_version: int
    ) -> "TransactionMetadata":
        begins = self.state is not TransactionState.ONGOING
        return self.transitioned(
            TransactionState.ONGOING,
            now_ms,
            partitions=added if begins else self.partitions | added,
            start_ms=now_ms if begins else self.start_ms,
            client_version=client_version,
        )

    def fenced(self, now_ms: int) -> "TransactionMetadata":
        """Aborted by the coordinator, in an epoch that no producer has yet.

        Its producer, which missed that, may continue in this epoch, by another InitProducerId or
        by an abort of its own (KIP-890), until another producer initializes. Not in the last epoch.
        """
        if self.is_epoch_exhausted:
            last_epoch, client_version = NONE, 0
        else:
            last_epoch, client_version = self.producer_epoch, self.client_version
        return self.transitioned(
            TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH),
            last_producer_epoch=last_epoch,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """The transaction after every partition has got its marker."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        changes: dict[str, object] = {"partitions": frozenset()}
        if self.next_producer_id != NONE:
            changes |= {
                "previous_producer_id": self.producer_id,
                "producer_id": self.next_producer_id,
                "producer_epoch": 0,
                "next_producer_id": NONE,
            }
        state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        return self.transitioned(state, now_ms, **changes)
