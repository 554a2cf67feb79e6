"""The transactional ids of one partition of `__transaction_state`."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.result import (
    CoordinatorResult,
    EmptyReply,
    Now,
    PendingReply,
    Refused,
    answer,
)
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.ending import TransactionEnd, ended
from penstock.coordinator.transaction.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    TransactionAbortable,
    TransactionalIdNotFound,
)
from penstock.coordinator.transaction.initiation import TransactionInit, initiated
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.errors import ProtocolError
from penstock.types import TopicPartition


class CleanupTimes(msgspec.Struct, frozen=True):
    """Soft state: when to look next for timed-out transactions and for expired ids, steady."""

    timeouts_ms: int
    removals_ms: int


TransactionResult: TypeAlias = CoordinatorResult[TransactionRecord, CleanupTimes]


class TransactionShard:
    """Operations only decide; `replay` and `apply_soft_state` only change the state."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self.transactions: dict[str, TransactionMetadata] = {}
        self.decided: dict[str, TransactionMetadata] = {}
        """Transactions whose markers have to be written."""
        self._cleanup = CleanupTimes(0, 0)

    # --- requests of producers

    def init(
        self,
        now: Now,
        pending: PendingReply[ProducerIdAndEpoch],
        transactional_id: str,
        request: TransactionInit,
        new_producer_id: int,
    ) -> TransactionResult:
        max_ms = self._config.transaction_max_timeout_ms
        if not 0 < request.timeout_ms <= max_ms:
            raise InvalidTransactionTimeout(
                f"transaction timeout {request.timeout_ms} ms is not within 1 to {max_ms} ms"
            )
        new = initiated(
            self.transactions.get(transactional_id), request, new_producer_id, now.wall_ms
        )
        if new.state.is_decided:
            refused = ConcurrentTransactions("the open transaction is being aborted first")
            return CoordinatorResult(
                (TransactionRecord(transactional_id, new),), (answer(pending, refused),)
            )
        return CoordinatorResult(
            (TransactionRecord(transactional_id, new),), (answer(pending, new.producer),)
        )

    def add(
        self,
        now: Now,
        pending: PendingReply[EmptyReply],
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> TransactionResult:
        known = self._known(transactional_id)
        known.check(producer)
        done = (answer(pending, EmptyReply()),)
        if known.state is TransactionState.ONGOING and partitions <= known.partitions:
            return CoordinatorResult(answers=done, reads_state=True)
        new = known.with_partitions(partitions, now.wall_ms, client_version)
        return CoordinatorResult((TransactionRecord(transactional_id, new),), done)

    def verify(
        self,
        pending: PendingReply[tuple[Refused, ...]],
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: tuple[TopicPartition, ...],
    ) -> TransactionResult:
        """For each partition, whether it is part of the producer's open transaction."""
        known = self._known(transactional_id)
        known.check(producer)
        taking_part = known.partitions if known.state is TransactionState.ONGOING else frozenset()
        refused = tuple(
            None if each in taking_part else TransactionAbortable(f"{each} was not added")
            for each in partitions
        )
        return CoordinatorResult(answers=(answer(pending, refused),), reads_state=True)

    def end(
        self,
        now: Now,
        pending: PendingReply[ProducerIdAndEpoch],
        transactional_id: str,
        request: TransactionEnd,
        new_producer_id: int,
    ) -> TransactionResult:
        known = self._known(transactional_id)
        new = ended(known, request, new_producer_id, now.wall_ms)
        if new is None:
            return CoordinatorResult(answers=(answer(pending, known.producer),), reads_state=True)
        return CoordinatorResult(
            (TransactionRecord(transactional_id, new),), (answer(pending, new.producer),)
        )

    # --- requests of the broker and of administrators

    def completed(
        self,
        now: Now,
        pending: PendingReply[EmptyReply],
        transactional_id: str,
        decided: TransactionMetadata,
    ) -> TransactionResult:
        """Every partition of `decided` has its marker."""
        done = (answer(pending, EmptyReply()),)
        if self.decided.get(transactional_id) != decided:
            return CoordinatorResult(answers=done)
        new = decided.completed(now.wall_ms)
        return CoordinatorResult((TransactionRecord(transactional_id, new),), done)

    def describe(
        self, pending: PendingReply[TransactionMetadata], transactional_id: str
    ) -> TransactionResult:
        known = self.transactions.get(transactional_id)
        if known is None:
            raise TransactionalIdNotFound(f"transactional id {transactional_id} is unknown")
        return CoordinatorResult(answers=(answer(pending, known),), reads_state=True)

    # --- changes of the state

    def replay(self, record: TransactionRecord) -> None:
        transactional_id, known = record.transactional_id, record.transaction
        self.decided.pop(transactional_id, None)
        if known is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = known
        if known.state.is_decided:
            self.decided[transactional_id] = known

    def replay_pending(self, record: TransactionRecord) -> None:
        raise ProtocolError(
            f"the record of {record.transactional_id} is itself part of a transaction"
        )

    def apply_soft_state(self, soft_state: CleanupTimes) -> None:
        self._cleanup = soft_state

    def on_loaded(self, now: Now) -> None:
        self._cleanup = CleanupTimes(self._next_timeouts_ms(now), self._next_removals_ms(now))

    # --- time

    def next_deadline_ms(self) -> int | None:
        if not self.transactions:
            return None
        return min(self._cleanup.timeouts_ms, self._cleanup.removals_ms)

    def expire(self, now: Now) -> TransactionResult:
        cleanup = self._cleanup
        if cleanup.timeouts_ms <= now.steady_ms:
            records = tuple(self._timed_out(now.wall_ms))
            cleanup = CleanupTimes(self._next_timeouts_ms(now), cleanup.removals_ms)
        else:
            records = tuple(self._expired(now.wall_ms))
            cleanup = CleanupTimes(cleanup.timeouts_ms, self._next_removals_ms(now))
        return CoordinatorResult(records, soft_state=cleanup, may_split=True)

    def _timed_out(self, now_ms: int) -> Iterable[TransactionRecord]:
        for transactional_id, known in self.transactions.items():
            # A start that far in the future means that the wall clock was set back since then:
            # the transaction would hold back its readers until that time comes again.
            if (
                known.state is TransactionState.ONGOING
                and abs(now_ms - known.start_ms) >= known.timeout_ms
            ):
                yield TransactionRecord(transactional_id, known.fenced(now_ms))

    def _expired(self, now_ms: int) -> Iterable[TransactionRecord]:
        retention_ms = self._config.transactional_id_expiration_ms
        for transactional_id, known in self.transactions.items():
            if known.state.is_at_rest and known.updated_ms + retention_ms <= now_ms:
                yield TransactionRecord(transactional_id, None)

    def _next_timeouts_ms(self, now: Now) -> int:
        config = self._config
        return now.steady_ms + config.transaction_abort_timed_out_transaction_cleanup_interval_ms

    def _next_removals_ms(self, now: Now) -> int:
        config = self._config
        return now.steady_ms + config.transaction_remove_expired_transaction_cleanup_interval_ms

    def _known(self, transactional_id: str) -> TransactionMetadata:
        known = self.transactions.get(transactional_id)
        if known is None:
            raise InvalidProducerIdMapping(f"transactional id {transactional_id} is unknown")
        return known
