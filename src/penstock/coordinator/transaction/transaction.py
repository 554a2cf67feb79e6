"""What is known of a transactional id: its producer, and its transaction if one is open."""

import msgspec

from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    ProducerFenced,
)
from penstock.coordinator.transaction.state import TRANSITIONS, State
from penstock.types import TopicPartition

NONE = -1
LAST_EPOCH = 2**15 - 1
"""The last is never given to a producer: it is for shutting out the one before."""

EPOCH_BUMPS = 2
"""From this `transaction.version` on every transaction has an epoch of its own (KIP-890)."""


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """One transactional id as of its last record. Times are wall times."""

    producer_id: int
    producer_epoch: int = NONE
    last_producer_epoch: int = NONE
    """The epoch before, whose owner may not have heard of the new one. No record holds it."""
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    """Epochs have run out: told to the producer, and in use from the next transaction on."""
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NONE
    updated_ms: int = NONE
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH - 1

    @property
    def producer(self) -> Producer:
        """Who may begin the next transaction."""
        if self.next_producer_id != NONE:
            return Producer(self.next_producer_id, 0)
        return Producer(self.producer_id, self.producer_epoch)

    def moved(self, state: State, now_ms: int, **changes: object) -> "Transaction":
        assert state in TRANSITIONS[self.state], f"{self.state} cannot become {state}"
        return msgspec.structs.replace(self, state=state, updated_ms=now_ms, **changes)

    def check(self, producer: Producer) -> None:
        """Refuse whoever is not the producer, and anybody while participants are being told."""
        if producer.id != self.producer_id:
            raise InvalidProducerIdMapping(f"the producer is {self.producer_id}, not {producer.id}")
        if producer.epoch != self.producer_epoch:
            raise ProducerFenced(f"epoch {producer.epoch}, and {self.producer_epoch} is current")
        if self.state.is_decided:
            raise ConcurrentTransactions("participants are being told")

    def with_partitions(
        self, added: frozenset[TopicPartition], now_ms: int, client_version: int
    ) -> "Transaction":
        begins = self.state is not State.ONGOING
        return self.moved(
            State.ONGOING,
            now_ms,
            partitions=added if begins else self.partitions | added,
            start_ms=now_ms if begins else self.start_ms,
            client_version=client_version,
        )

    def fenced(self, now_ms: int) -> "Transaction":
        """Aborted by the coordinator: its producer is shut out by an epoch that nobody has."""
        return self.moved(
            State.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH),
            last_producer_epoch=NONE,
            client_version=0,  # or it would take the epoch for that of its own next transaction
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Every participant has its marker."""
        committed = self.state is State.PREPARE_COMMIT
        changes: dict[str, object] = {"partitions": frozenset()}
        if self.next_producer_id != NONE:
            changes |= {
                "previous_producer_id": self.producer_id,
                "producer_id": self.next_producer_id,
                "producer_epoch": 0,
                "next_producer_id": NONE,
            }
        state = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        return self.moved(state, now_ms, **changes)
