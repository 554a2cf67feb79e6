"""The transaction coordinator: routes each operation to the shard of its transactional id."""

from collections.abc import Callable
from typing import TypeVar

from penstock.coordinator.keys import partition_for
from penstock.coordinator.result import EmptyReply, Now, PendingReply, Refused
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction import ending, initiation
from penstock.coordinator.transaction.ending import TransactionEnd
from penstock.coordinator.transaction.errors import InvalidTransactionRequest
from penstock.coordinator.transaction.initiation import TransactionInit
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.shard import TransactionResult, TransactionShard
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.types import TopicPartition

T = TypeVar("T")

TOPIC = "__transaction_state"


class TransactionCoordinator:
    """Every operation returns a pending reply, which has its value at once or gets it later.

    `partition_count` is that of `__transaction_state`, which never changes while a broker runs.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard, TransactionRecord],
        partition_count: Callable[[], int],
    ) -> None:
        self.runtime, self.partition_count = runtime, partition_count

    def partition_of(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self.partition_count())

    def shards(self) -> list[TransactionShard]:
        """Every shard that this broker leads; refused while one of them is loading."""
        return self.runtime.shards()

    def needs_producer_id(
        self, transactional_id: str, request: TransactionInit | TransactionEnd
    ) -> bool:
        """Whether the request needs a new producer id; raises the errors of the request itself."""
        known = self.runtime.shard(self.partition_of(transactional_id)).transactions.get(
            transactional_id
        )
        if isinstance(request, TransactionInit):
            return initiation.needs_producer_id(known)
        return ending.needs_producer_id(known, request)

    def init(
        self, transactional_id: str, request: TransactionInit, new_producer_id: int
    ) -> PendingReply[ProducerIdAndEpoch]:
        return self._run(
            transactional_id,
            lambda shard, now, pending: shard.init(
                now, pending, transactional_id, request, new_producer_id
            ),
        )

    def add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        client_version: int = 0,
    ) -> PendingReply[EmptyReply]:
        return self._run(
            transactional_id,
            lambda shard, now, pending: shard.add(
                now, pending, transactional_id, producer, partitions, client_version
            ),
        )

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: tuple[TopicPartition, ...],
    ) -> PendingReply[tuple[Refused, ...]]:
        return self._run(
            transactional_id,
            lambda shard, _, pending: shard.verify(pending, transactional_id, producer, partitions),
        )

    def end(
        self, transactional_id: str, request: TransactionEnd, new_producer_id: int
    ) -> PendingReply[ProducerIdAndEpoch]:
        return self._run(
            transactional_id,
            lambda shard, now, pending: shard.end(
                now, pending, transactional_id, request, new_producer_id
            ),
        )

    def describe(self, transactional_id: str) -> PendingReply[TransactionMetadata]:
        return self._run(
            transactional_id, lambda shard, _, pending: shard.describe(pending, transactional_id)
        )

    def _run(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, Now, PendingReply[T]], TransactionResult],
    ) -> PendingReply[T]:
        return self.runtime.run(
            self.partition_of(transactional_id), operation if transactional_id else _without_id
        )


def _without_id(*_: object) -> TransactionResult:
    raise InvalidTransactionRequest("the transactional id is empty")
