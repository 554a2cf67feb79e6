"""What produce and commits of offsets ask the transaction coordinator before they append."""

from penstock.broker.context import Services
from penstock.coordinator.outcome import Done, Ticket
from penstock.coordinator.refusal import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import (
    ConcurrentTransactions,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
)
from penstock.coordinator.transaction.shard import Refused
from penstock.coordinator.transaction.transaction import EPOCH_BUMPS
from penstock.errors import KafkaError
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.types import TopicPartition


def taking_part(
    name: str,
    producer: Producer,
    places: tuple[TopicPartition, ...],
    services: Services,
    *,
    adds: bool,
) -> tuple[Refused, ...]:
    """For each place: why it does not take part in the producer's open transaction.

    Newer clients do not add partitions: their first write does (`adds`, KIP-890).
    """
    transactions = services.transactions
    ticket: Ticket[Done] | Ticket[tuple[Refused, ...]]
    if adds:
        ticket = transactions.add(name, producer, frozenset(places), EPOCH_BUMPS)
    else:
        ticket = transactions.verify(name, producer, places)
    reply = ticket.reply
    if not transactions.runtime.is_ready(ticket):
        reply = CoordinatorNotAvailable(f"{name} is not known to have {places[0]} yet")
    if isinstance(reply, tuple):
        return reply
    return (reply if isinstance(reply, KafkaError) else None,) * len(places)


def take_part(
    name: str, producer: Producer, where: TopicPartition, services: Services, *, adds: bool
) -> None:
    """Refuse unless `where` takes part in the producer's open transaction."""
    (refused,) = taking_part(name, producer, (where,), services, adds=adds)
    if refused is not None:
        raise refused


def retriable_by_producers(error: KafkaError) -> bool:
    """Whether a producer is to send its batch again, though it does not know these errors."""
    return isinstance(
        error,
        ConcurrentTransactions | CoordinatorLoading | CoordinatorNotAvailable | NotCoordinator,
    )


def as_producers_know_it(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    """The refusal as partition leaders, not coordinators, tell it."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and not knows_abortable:
        return InvalidTxnState(str(error))
    return error
