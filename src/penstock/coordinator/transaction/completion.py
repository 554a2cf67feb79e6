"""Completes every decided transaction: markers to its partitions, then the last record."""

import logging
from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from penstock.coordinator.errors import NotCoordinator
from penstock.coordinator.result import EmptyReply, PendingReply
from penstock.coordinator.runtime import RETRY_MS, CoordinatorRuntime
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    TransactionMetadata,
)
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import Loop
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


class TransactionMarker(msgspec.Struct, frozen=True):
    """The end of a producer's transaction, as it is written to its partitions."""

    producer_id: int
    producer_epoch: int
    committed: bool
    bumps_epoch: bool = False
    """`producer_epoch` is the transaction's epoch plus one (KIP-890)."""


class MarkerWriter(Protocol):
    """Writes markers, here or through other brokers."""

    def write(
        self,
        marker: TransactionMarker,
        participants: Collection[TopicPartition],
        coordinator: int,
        done: Callable[[], object],
    ) -> None:
        """Try until every participant that still exists has the marker, then call `done`.

        `coordinator` is the partition of `__transaction_state` that decided.
        """


class TransactionCompletion:
    """Belongs to the event loop. The runtime calls it after each change of a shard.

    One record decides a transaction's outcome: PrepareCommit or PrepareAbort. Its markers are
    written once that record is committed, and again by any coordinator that loads it after a crash.
    A marker that arrives twice has no further effect.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard, TransactionRecord],
        marker_writer: MarkerWriter,
        loop: Loop,
    ) -> None:
        self._runtime, self._marker_writer, self._loop = runtime, marker_writer, loop
        self._started: dict[tuple[int, str], TransactionMetadata] = {}

    def on_change(self, partition: int, shard: TransactionShard) -> None:
        if not shard.decided:
            return
        for transactional_id, decided in list(shard.decided.items()):
            if self._started.get((partition, transactional_id)) is not decided:
                self._started[partition, transactional_id] = decided
                self._write_markers(partition, transactional_id, decided)

    def on_resign(self, partition: int) -> None:
        """The partition's new leader completes its decided transactions."""
        for key in [each for each in self._started if each[0] == partition]:
            del self._started[key]

    def _write_markers(
        self, partition: int, transactional_id: str, decided: TransactionMetadata
    ) -> None:
        """Write the markers once the decision is committed and cannot be lost.

        The producer gets its response first: the markers follow in the loop's next turn. On a
        single node no request of that producer can come in between.
        """
        marker = TransactionMarker(
            decided.producer_id,
            decided.producer_epoch,
            committed=decided.state is TransactionState.PREPARE_COMMIT,
            bumps_epoch=decided.client_version >= EPOCH_BUMP_VERSION,
        )

        def write() -> None:
            self._marker_writer.write(
                marker,
                decided.partitions,
                partition,
                lambda: self._complete(partition, transactional_id, decided),
            )

        self._runtime.when_committed(partition, lambda: self._loop.call_soon(write))

    def _complete(
        self,
        partition: int,
        transactional_id: str,
        decided: TransactionMetadata,
        refused_before: ErrorCode | None = None,
    ) -> None:
        pending: PendingReply[EmptyReply] = self._runtime.run(
            partition,
            lambda shard, now, pending: shard.completed(now, pending, transactional_id, decided),
        )
        refused = pending.reply
        if isinstance(refused, KafkaError) and not isinstance(refused, NotCoordinator):
            if refused.code is not refused_before:
                logger.warning(
                    "transactional id %s: the completion of its transaction cannot be written: %s; "
                    "trying again",
                    transactional_id,
                    refused,
                )
            self._loop.call_later(
                RETRY_MS / 1000,
                lambda: self._complete(partition, transactional_id, decided, refused.code),
            )
        elif self._started.get((partition, transactional_id)) is decided:
            del self._started[partition, transactional_id]
