"""Verifies with the transaction coordinator before produce and offset commits append (KIP-890)."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.broker.cluster import Cluster
from penstock.broker.parked import Parked
from penstock.broker.transaction.verification import PendingVerifications
from penstock.broker.transaction.verification_outbox import RemoteVerification
from penstock.broker.waiters import Waiters
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.result import PendingReply, Refused
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.errors import InvalidTxnState
from penstock.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION
from penstock.errors import ErrorCode, KafkaError
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.metadata.records import NO_LEADER
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition

WAIT_MS = 5_000

Answers: TypeAlias = tuple[Refused, ...]
"""For each partition: why it is not in the producer's open transaction, or None."""


class TransactionVerifier:
    """Calls the coordinator of a transaction, on any broker. Belongs to the event loop."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        coordinator: TransactionCoordinator,
        waiters: Waiters,
        pending: PendingVerifications,
        post: Callable[[BrokerId, RemoteVerification], object],
    ) -> None:
        self._broker_id, self._cluster, self._partitions = broker_id, cluster, partitions
        self._coordinator, self._waiters, self._post = coordinator, waiters, post
        self.pending = pending

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        topic_partitions: tuple[TopicPartition, ...],
        *,
        adds: bool,
    ) -> Answers | asyncio.Future[Answers]:
        """`adds`: newer clients do not send AddPartitionsToTxn; their first write adds the
        partition.
        """
        shard = self._coordinator.partition_of(transactional_id)
        state_partition = TopicPartition(TRANSACTION_STATE, shard)
        here = self._partitions.find(*state_partition)
        if here is not None and here.leads:
            return self._verify_here(transactional_id, producer, topic_partitions, adds=adds)
        known = self._cluster.image.partition(state_partition)
        if known is None or known.leader in {NO_LEADER, self._broker_id}:
            refusal = CoordinatorNotAvailable(f"{state_partition} has no leader")
            return (refusal,) * len(topic_partitions)
        answers: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._post(
            known.leader,
            RemoteVerification(transactional_id, producer, topic_partitions, adds, answers),
        )
        return answers

    def _verify_here(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        topic_partitions: tuple[TopicPartition, ...],
        *,
        adds: bool,
    ) -> Answers | asyncio.Future[Answers]:
        pending_reply = self._pending_reply(transactional_id, producer, topic_partitions, adds=adds)

        def attempt() -> Answers | None:
            reply = self._coordinator.runtime.reply(pending_reply)
            if reply is None or isinstance(reply, tuple):
                return reply
            return (reply if isinstance(reply, KafkaError) else None,) * len(topic_partitions)

        def expire() -> Answers:
            refusal = CoordinatorNotAvailable(f"{transactional_id}: its record is not committed")
            return (refusal,) * len(topic_partitions)

        answers = attempt()
        if answers is not None:
            return answers
        keys = [pending_reply, TopicPartition(TRANSACTION_STATE, pending_reply.partition)]
        return self._waiters.future(Parked(keys, WAIT_MS, attempt, expire))

    def _pending_reply(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        topic_partitions: tuple[TopicPartition, ...],
        *,
        adds: bool,
    ) -> PendingReply[Any]:
        """Its value is an `EmptyReply` if partitions are added, otherwise `Answers`."""
        if adds:
            return self._coordinator.add(
                transactional_id, producer, frozenset(topic_partitions), EPOCH_BUMP_VERSION
            )
        return self._coordinator.verify(transactional_id, producer, topic_partitions)


RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    # The coordinator was not reached, or does not know a new topic yet.
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
}


def retriable_by_producers(error: KafkaError) -> bool:
    """Whether a producer should resend its batch, though it does not know this error code."""
    return error.code in RETRIABLE


def error_for_producer(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    """The coordinator's error as a partition leader reports it."""
    if error.code is ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch(str(error))
    if error.code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return InvalidTxnState(str(error))
    return error
