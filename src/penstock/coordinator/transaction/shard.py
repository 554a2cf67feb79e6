"""The transactional ids of one partition of `__transaction_state`, and what becomes of them."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.outcome import Done, Now, Outcome, Ticket, answer
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.ending import Ending, ended
from penstock.coordinator.transaction.initiation import Initiating, initiated
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.refusal import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    TransactionAbortable,
    TransactionalIdNotFound,
)
from penstock.coordinator.transaction.state import State
from penstock.coordinator.transaction.transaction import Transaction
from penstock.errors import KafkaError, ProtocolError
from penstock.types import TopicPartition

Refused: TypeAlias = KafkaError | None


class Checks(msgspec.Struct, frozen=True):
    """When to look again for transactions that take too long, and for ids that nobody uses."""

    timeouts_ms: int
    removals_ms: int


Decision: TypeAlias = Outcome[TransactionRecord, Checks]


class TransactionShard:
    """Operations decide and change nothing; `replay` and `keep` change and decide nothing."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self.transactions: dict[str, Transaction] = {}
        self.decided: dict[str, Transaction] = {}
        """Those whose participants have to be told."""
        self._checks = Checks(0, 0)

    # --- what producers ask

    def init(
        self,
        now: Now,
        ticket: Ticket[Producer],
        name: str,
        asked: Initiating,
        new_producer_id: int,
    ) -> Decision:
        longest_ms = self._config.transaction_max_timeout_ms
        if not 0 < asked.timeout_ms <= longest_ms:
            raise InvalidTransactionTimeout(f"{asked.timeout_ms} ms, at most {longest_ms}")
        new = initiated(self.transactions.get(name), asked, new_producer_id, now.wall_ms)
        if new.state.is_decided:
            refused = ConcurrentTransactions("the open transaction is aborted first")
            return Outcome((TransactionRecord(name, new),), (answer(ticket, refused),))
        return Outcome((TransactionRecord(name, new),), (answer(ticket, new.producer),))

    def add(
        self,
        now: Now,
        ticket: Ticket[Done],
        name: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> Decision:
        known = self._known(name)
        known.check(producer)
        done = (answer(ticket, Done()),)
        if known.state is State.ONGOING and partitions <= known.partitions:
            return Outcome(answers=done, reads=True)
        new = known.with_partitions(partitions, now.wall_ms, client_version)
        return Outcome((TransactionRecord(name, new),), done)

    def verify(
        self,
        ticket: Ticket[tuple[Refused, ...]],
        name: str,
        producer: Producer,
        partitions: tuple[TopicPartition, ...],
    ) -> Decision:
        """One answer for each: whether it takes part in the producer's open transaction."""
        known = self._known(name)
        known.check(producer)
        taking_part = known.partitions if known.state is State.ONGOING else frozenset()
        refused = tuple(
            None if each in taking_part else TransactionAbortable(f"{each} was not added")
            for each in partitions
        )
        return Outcome(answers=(answer(ticket, refused),), reads=True)

    def end(
        self, now: Now, ticket: Ticket[Producer], name: str, asked: Ending, new_producer_id: int
    ) -> Decision:
        known = self._known(name)
        new = ended(known, asked, new_producer_id, now.wall_ms)
        if new is None:
            return Outcome(answers=(answer(ticket, known.producer),), reads=True)
        return Outcome((TransactionRecord(name, new),), (answer(ticket, new.producer),))

    # --- what the broker tells

    def completed(
        self, now: Now, ticket: Ticket[Done], name: str, decided: Transaction
    ) -> Decision:
        """Every participant of `decided` has its marker."""
        done = (answer(ticket, Done()),)
        if self.decided.get(name) != decided:
            return Outcome(answers=done)
        new = decided.completed(now.wall_ms)
        return Outcome((TransactionRecord(name, new),), done)

    def describe(self, ticket: Ticket[Transaction], name: str) -> Decision:
        known = self.transactions.get(name)
        if known is None:
            raise TransactionalIdNotFound(f"{name} is not known")
        return Outcome(answers=(answer(ticket, known),), reads=True)

    # --- what follows from decisions

    def replay(self, record: TransactionRecord) -> None:
        name, known = record.transactional_id, record.transaction
        self.decided.pop(name, None)
        if known is None:
            self.transactions.pop(name, None)
            return
        self.transactions[name] = known
        if known.state.is_decided:
            self.decided[name] = known

    def pended(self, record: TransactionRecord) -> None:
        raise ProtocolError(f"{record.transactional_id} is in a transaction of its own")

    def keep(self, soft: Checks) -> None:
        self._checks = soft

    def loaded(self, now: Now) -> None:
        self._checks = Checks(self._next_timeouts_ms(now), self._next_removals_ms(now))

    # --- time

    def next_deadline_ms(self) -> int | None:
        if not self.transactions:
            return None
        return min(self._checks.timeouts_ms, self._checks.removals_ms)

    def expire(self, now: Now) -> Decision:
        checks = self._checks
        if checks.timeouts_ms <= now.steady_ms:
            records = tuple(self._timed_out(now.wall_ms))
            checks = Checks(self._next_timeouts_ms(now), checks.removals_ms)
        else:
            records = tuple(self._unused(now.wall_ms))
            checks = Checks(checks.timeouts_ms, self._next_removals_ms(now))
        return Outcome(records, soft=checks, may_split=True)

    def _timed_out(self, now_ms: int) -> Iterable[TransactionRecord]:
        for name, known in self.transactions.items():
            # A start that far in the future is of a wall clock that was set back since: the
            # transaction would hold up its readers until that time comes again.
            if known.state is State.ONGOING and abs(now_ms - known.start_ms) >= known.timeout_ms:
                yield TransactionRecord(name, known.fenced(now_ms))

    def _unused(self, now_ms: int) -> Iterable[TransactionRecord]:
        kept_ms = self._config.transactional_id_expiration_ms
        for name, known in self.transactions.items():
            if known.state.is_at_rest and known.updated_ms + kept_ms <= now_ms:
                yield TransactionRecord(name, None)

    def _next_timeouts_ms(self, now: Now) -> int:
        config = self._config
        return now.steady_ms + config.transaction_abort_timed_out_transaction_cleanup_interval_ms

    def _next_removals_ms(self, now: Now) -> int:
        config = self._config
        return now.steady_ms + config.transaction_remove_expired_transaction_cleanup_interval_ms

    def _known(self, name: str) -> Transaction:
        known = self.transactions.get(name)
        if known is None:
            raise InvalidProducerIdMapping(f"{name} is not known")
        return known
