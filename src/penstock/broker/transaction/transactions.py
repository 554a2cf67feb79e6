"""What produce and commits of offsets ask the transaction coordinator before they append."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.broker.cluster import Cluster
from penstock.broker.peers.participation_posts import RemoteQuestion
from penstock.broker.waiters import Parked, Waiters
from penstock.coordinator.outcome import Ticket
from penstock.coordinator.refusal import CoordinatorNotAvailable
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.refusal import InvalidTxnState
from penstock.coordinator.transaction.shard import Refused
from penstock.coordinator.transaction.transaction import EPOCH_BUMPS
from penstock.errors import ErrorCode, KafkaError
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.metadata.records import NO_LEADER
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition

WAIT_MS = 5_000

Answers: TypeAlias = tuple[Refused, ...]
"""For each place: why it does not take part in the producer's open transaction."""


class Participants:
    """Asks the coordinator of a transaction, wherever it is. Belongs to the event loop."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        coordinator: TransactionCoordinator,
        waiters: Waiters,
        post: Callable[[BrokerId, RemoteQuestion], object],
    ) -> None:
        self._broker_id, self._cluster, self._partitions = broker_id, cluster, partitions
        self._coordinator, self._waiters, self._post = coordinator, waiters, post

    def ask(
        self, name: str, producer: Producer, places: tuple[TopicPartition, ...], *, adds: bool
    ) -> Answers | asyncio.Future[Answers]:
        """Newer clients do not add partitions: their first write does (`adds`, KIP-890)."""
        where = TopicPartition(TRANSACTION_STATE, self._coordinator.partition_of(name))
        here = self._partitions.find(*where)
        if here is not None and here.leads:
            return self._asked_here(name, producer, places, adds=adds)
        known = self._cluster.image.partition(where)
        if known is None or known.leader in {NO_LEADER, self._broker_id}:
            return (CoordinatorNotAvailable(f"{where} has no leader"),) * len(places)
        return self._asked_there(known.leader, name, producer, places, adds=adds)

    def _asked_here(
        self, name: str, producer: Producer, places: tuple[TopicPartition, ...], *, adds: bool
    ) -> Answers | asyncio.Future[Answers]:
        ticket = self._ticket(name, producer, places, adds=adds)

        def attempt() -> Answers | None:
            reply = self._coordinator.runtime.reply(ticket)
            if reply is None or isinstance(reply, tuple):
                return reply
            return (reply if isinstance(reply, KafkaError) else None,) * len(places)

        def late() -> Answers:
            return (CoordinatorNotAvailable(f"{name} is not known to have it yet"),) * len(places)

        answers = attempt()
        if answers is not None:
            return answers
        keys = [ticket, TopicPartition(TRANSACTION_STATE, ticket.partition)]
        return self._waiters.future(Parked(keys, WAIT_MS, attempt, late))

    def _ticket(
        self, name: str, producer: Producer, places: tuple[TopicPartition, ...], *, adds: bool
    ) -> Ticket[Any]:
        """Its reply is `Done`, or `Answers` where nothing is added."""
        if adds:
            return self._coordinator.add(name, producer, frozenset(places), EPOCH_BUMPS)
        return self._coordinator.verify(name, producer, places)

    def _asked_there(
        self,
        coordinator: BrokerId,
        name: str,
        producer: Producer,
        places: tuple[TopicPartition, ...],
        *,
        adds: bool,
    ) -> asyncio.Future[Answers]:
        answers: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        question = RemoteQuestion(name, producer, places, adds, answers)
        self._post(coordinator, question)
        return answers


RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    # The coordinator was not reached, or has not heard of a new topic yet.
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
}


def retriable_by_producers(error: KafkaError) -> bool:
    """Whether a producer is to send its batch again, though it does not know these errors."""
    return error.code in RETRIABLE


def as_producers_know_it(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    """The refusal as partition leaders, not coordinators, tell it."""
    if error.code is ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch(str(error))
    if error.code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return InvalidTxnState(str(error))
    return error
