"""The coordinator of transactions: finds the shard of a transactional id and has it decide."""

from collections.abc import Callable
from typing import TypeVar

from penstock.coordinator.keys import partition_for
from penstock.coordinator.outcome import Done, Now, Ticket
from penstock.coordinator.runtime import Runtime
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction import ending, initiation
from penstock.coordinator.transaction.ending import Ending
from penstock.coordinator.transaction.initiation import Initiating
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.refusal import InvalidTransactionRequest
from penstock.coordinator.transaction.shard import Decision, Refused, TransactionShard
from penstock.coordinator.transaction.transaction import Transaction
from penstock.types import TopicPartition

T = TypeVar("T")

TOPIC = "__transaction_state"


class TransactionCoordinator:
    """Every call gives a ticket, whose reply is there at once or comes later.

    `partition_count` is that of `__transaction_state`, which never changes while a broker runs.
    """

    def __init__(
        self,
        runtime: Runtime[TransactionShard, TransactionRecord],
        partition_count: Callable[[], int],
    ) -> None:
        self.runtime, self.partition_count = runtime, partition_count

    def partition_of(self, name: str) -> int:
        return partition_for(name, self.partition_count())

    def shards(self) -> list[TransactionShard]:
        """All that this broker coordinates; refused while some of it is being loaded."""
        return self.runtime.shards()

    def needs_producer_id(self, name: str, asked: Initiating | Ending) -> bool:
        """Whether `asked` cannot be decided without a new producer id; refused as it would be."""
        known = self.runtime.shard(self.partition_of(name)).transactions.get(name)
        if isinstance(asked, Initiating):
            return initiation.needs_producer_id(known)
        return ending.needs_producer_id(known, asked)

    def init(self, name: str, asked: Initiating, new_producer_id: int) -> Ticket[Producer]:
        return self._run(
            name,
            lambda shard, now, ticket: shard.init(now, ticket, name, asked, new_producer_id),
        )

    def add(
        self,
        name: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int = 0,
    ) -> Ticket[Done]:
        return self._run(
            name,
            lambda shard, now, ticket: shard.add(
                now, ticket, name, producer, partitions, client_version
            ),
        )

    def verify(
        self, name: str, producer: Producer, partitions: tuple[TopicPartition, ...]
    ) -> Ticket[tuple[Refused, ...]]:
        return self._run(
            name, lambda shard, _, ticket: shard.verify(ticket, name, producer, partitions)
        )

    def end(self, name: str, asked: Ending, new_producer_id: int) -> Ticket[Producer]:
        return self._run(
            name, lambda shard, now, ticket: shard.end(now, ticket, name, asked, new_producer_id)
        )

    def describe(self, name: str) -> Ticket[Transaction]:
        return self._run(name, lambda shard, _, ticket: shard.describe(ticket, name))

    def _run(
        self, name: str, operation: Callable[[TransactionShard, Now, Ticket[T]], Decision]
    ) -> Ticket[T]:
        return self.runtime.run(self.partition_of(name), operation if name else _nameless)


def _nameless(*_: object) -> Decision:
    raise InvalidTransactionRequest("a transaction needs an id")
