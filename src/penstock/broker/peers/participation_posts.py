"""Questions to coordinators on other brokers: what takes part in a transaction?"""

import asyncio
from collections.abc import Callable

import msgspec

from penstock.broker.peers.outbox import Link, Outbox
from penstock.client.errors import BrokerRefused
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.shard import Refused
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


class RemoteQuestion(msgspec.Struct, frozen=True):
    """Of one producer's transaction: whether these places take part, or are to (`adds`)."""

    transactional_id: str
    producer: Producer
    places: tuple[TopicPartition, ...]
    adds: bool
    answers: "asyncio.Future[tuple[Refused, ...]]"

    def tell(self, codes: list[int]) -> None:
        if not self.answers.done():
            about = f"the coordinator of {self.transactional_id}"
            self.answers.set_result(
                tuple(
                    None if code == ErrorCode.NONE else BrokerRefused(code, about) for code in codes
                )
            )

    def failed(self, code: ErrorCode) -> None:
        self.tell([code] * len(self.places))


ParticipationPosts = Outbox[RemoteQuestion, AddPartitionsToTxnResponse]


def participation_posts(
    tasks: asyncio.TaskGroup, connection_to: Callable[[BrokerId], Link]
) -> ParticipationPosts:
    return Outbox(
        tasks,
        connection_to,
        participation_request,
        AddPartitionsToTxnResponse,
        tell,
        TIMEOUT_MS,
    )


def participation_request(questions: list[RemoteQuestion]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in questions])


def _transaction(question: RemoteQuestion) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer.id,
        producer_epoch=question.producer.epoch,
        verify_only=not question.adds,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=partitions)
            for name, partitions in indexes_by_topic(question.places).items()
        ],
    )


def tell(questions: list[RemoteQuestion], response: AddPartitionsToTxnResponse) -> None:
    """Results come in the order of the questions, in which an id may be twice; Kafka keeps none."""
    if response.error_code:
        for question in questions:
            question.tell([response.error_code] * len(question.places))
        return
    for question, result in zip(questions, _in_order(questions, response), strict=True):
        codes = {
            TopicPartition(topic.name, each.partition_index): each.partition_error_code
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        question.tell([codes.get(where, unknown) for where in question.places])


def _in_order(
    questions: list[RemoteQuestion], response: AddPartitionsToTxnResponse
) -> list[AddPartitionsToTxnResult]:
    results = response.results_by_transaction
    asked = [each.transactional_id for each in questions]
    if [each.transactional_id for each in results] == asked:
        return results
    by_id = {each.transactional_id: each for each in results}
    return [by_id.get(each, AddPartitionsToTxnResult()) for each in asked]
