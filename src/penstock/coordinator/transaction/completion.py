"""Sees every decided transaction through: markers to its participants, then the last record."""

import logging
from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from penstock.coordinator.outcome import Done, Ticket
from penstock.coordinator.refusal import NotCoordinator
from penstock.coordinator.runtime import RETRY_MS, Runtime
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.state import State
from penstock.coordinator.transaction.transaction import EPOCH_BUMPS, Transaction
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import Loop
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


class Verdict(msgspec.Struct, frozen=True):
    """How a producer's transaction ended."""

    producer_id: int
    producer_epoch: int
    committed: bool
    bumps_epoch: bool = False
    """The epoch is the one after the transaction's (KIP-890)."""


class Markers(Protocol):
    """Who can write markers, here or on other brokers."""

    def write(
        self,
        verdict: Verdict,
        participants: Collection[TopicPartition],
        coordinator: int,
        done: Callable[[], object],
    ) -> None:
        """Try until every participant that still exists has it, then call `done`.

        `coordinator` is the partition of `__transaction_state` whose word it is.
        """


class Completion:
    """Belongs to the event loop. It hears of each change of a shard."""

    def __init__(
        self, runtime: Runtime[TransactionShard, TransactionRecord], markers: Markers, loop: Loop
    ) -> None:
        self._runtime, self._markers, self._loop = runtime, markers, loop
        self._started: dict[tuple[int, str], Transaction] = {}

    def changed(self, partition: int, shard: TransactionShard) -> None:
        if not shard.decided:
            return
        for name, decided in list(shard.decided.items()):
            if self._started.get((partition, name)) is not decided:
                self._started[partition, name] = decided
                self._tell(partition, name, decided)

    def resigned(self, partition: int) -> None:
        """Whoever leads it now sees to what it has decided."""
        for key in [each for each in self._started if each[0] == partition]:
            del self._started[key]

    def _tell(self, partition: int, name: str, decided: Transaction) -> None:
        """A decision that could still be lost may not be told: it is looked at once committed.

        The producer hears of it first: markers go out in the loop's next turn, while it is
        already busy with what it writes next, and before that can be read.
        """
        verdict = Verdict(
            decided.producer_id,
            decided.producer_epoch,
            committed=decided.state is State.PREPARE_COMMIT,
            bumps_epoch=decided.client_version >= EPOCH_BUMPS,
        )

        def write() -> None:
            self._markers.write(
                verdict,
                decided.partitions,
                partition,
                lambda: self._told(partition, name, decided),
            )

        self._runtime.when_committed(partition, lambda: self._loop.call_soon(write))

    def _told(
        self,
        partition: int,
        name: str,
        decided: Transaction,
        refused_before: ErrorCode | None = None,
    ) -> None:
        ticket: Ticket[Done] = self._runtime.run(
            partition, lambda shard, now, ticket: shard.completed(now, ticket, name, decided)
        )
        refused = ticket.reply
        if isinstance(refused, KafkaError) and not isinstance(refused, NotCoordinator):
            if refused.code is not refused_before:
                logger.warning(
                    "%s: the end of its transaction is not written yet: %s; trying again",
                    name,
                    refused,
                )
            self._loop.call_later(
                RETRY_MS / 1000, lambda: self._told(partition, name, decided, refused.code)
            )
        elif self._started.get((partition, name)) is decided:
            del self._started[partition, name]
