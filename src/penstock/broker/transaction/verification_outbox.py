"""Sends verifications to coordinators on other brokers (AddPartitionsToTxn)."""

import asyncio
from collections.abc import Callable

import msgspec

from penstock.broker.peers.outbox import Link, Outbox
from penstock.client.errors import BrokerRefused
from penstock.coordinator.result import Refused
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import ErrorCode
from penstock.types import BrokerId, TopicPartition, indexes_by_topic
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TIMEOUT_MS = 10_000
"""Longer than a coordinator waits for its followers."""


class RemoteVerification(msgspec.Struct, frozen=True):
    """A check that partitions are in one producer's transaction; `adds` adds them to it."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    topic_partitions: tuple[TopicPartition, ...]
    adds: bool
    answers: "asyncio.Future[tuple[Refused, ...]]"

    def answer(self, codes: list[int]) -> None:
        if not self.answers.done():
            about = f"the coordinator of {self.transactional_id}"
            self.answers.set_result(
                tuple(
                    None if code == ErrorCode.NONE else BrokerRefused(code, about) for code in codes
                )
            )

    def failed(self, code: ErrorCode) -> None:
        self.answer([code] * len(self.topic_partitions))


VerificationOutbox = Outbox[RemoteVerification, AddPartitionsToTxnResponse]


def verification_outbox(
    tasks: asyncio.TaskGroup, connection_to: Callable[[BrokerId], Link]
) -> VerificationOutbox:
    return Outbox(
        tasks,
        connection_to,
        verification_request,
        AddPartitionsToTxnResponse,
        answer_all,
        TIMEOUT_MS,
    )


def verification_request(verifications: list[RemoteVerification]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in verifications])


def _transaction(verification: RemoteVerification) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=verification.transactional_id,
        producer_id=verification.producer.id,
        producer_epoch=verification.producer.epoch,
        verify_only=not verification.adds,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=partitions)
            for name, partitions in indexes_by_topic(verification.topic_partitions).items()
        ],
    )


def answer_all(
    verifications: list[RemoteVerification], response: AddPartitionsToTxnResponse
) -> None:
    """Answer each verification. Penstock's results are in request order, which may repeat an id;
    Kafka's may be in any order.
    """
    if response.error_code:
        for verification in verifications:
            verification.answer([response.error_code] * len(verification.topic_partitions))
        return
    for verification, result in zip(verifications, _in_order(verifications, response), strict=True):
        codes = {
            TopicPartition(topic.name, each.partition_index): each.partition_error_code
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        verification.answer([codes.get(tp, unknown) for tp in verification.topic_partitions])


def _in_order(
    verifications: list[RemoteVerification], response: AddPartitionsToTxnResponse
) -> list[AddPartitionsToTxnResult]:
    results = response.results_by_transaction
    asked = [each.transactional_id for each in verifications]
    if [each.transactional_id for each in results] == asked:
        return results
    by_id = {each.transactional_id: each for each in results}
    return [by_id.get(each, AddPartitionsToTxnResult()) for each in asked]
