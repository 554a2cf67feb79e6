"""AddPartitionsToTxn (key 24, v0-v5): partitions that a producer is about to write to.

Clients send one transaction (up to v3), brokers send many, and may only verify that the partitions
are in it. Refused: partitions that do not exist, and with them all others of the transaction.
"""

from typing import Any

import msgspec

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, code_for
from penstock.broker.translate.producers import WAIT_MS, as_known
from penstock.coordinator.result import PendingReply
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)


class UnknownTopicOrPartition(KafkaError):
    """The partition does not exist."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class OperationNotAttempted(KafkaError):
    """Another partition of the request was refused."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class VerifiedTransaction(msgspec.Struct, frozen=True):
    """One transaction of a request, and those of its partitions that do not exist."""

    transaction: AddPartitionsToTxnTransaction
    partitions: tuple[TopicPartition, ...]
    unknown: frozenset[TopicPartition]


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, ctx: Context
) -> AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]:
    alone = ctx.version < 4
    requested = [
        checked(each, ctx) for each in ([as_one(request)] if alone else request.transactions)
    ]
    pending_replies = [pending(each, ctx) for each in requested if not each.unknown]

    def respond(replies: list[object]) -> AddPartitionsToTxnResponse:
        rest = iter(replies)
        results = [result(each, None if each.unknown else next(rest), ctx) for each in requested]
        if alone:
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=results[0].topic_results
            )
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    return answered(
        pending_replies, respond, ctx, WAIT_MS, ctx.services.coordination.transactions.runtime
    )


def as_one(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    """The transactions of the request; older versions have one."""
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def checked(transaction: AddPartitionsToTxnTransaction, ctx: Context) -> VerifiedTransaction:
    image = ctx.services.cluster.image
    partitions = tuple(
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    )
    unknown = frozenset(each for each in partitions if image.partition(each) is None)
    return VerifiedTransaction(transaction, partitions, unknown)


def pending(requested: VerifiedTransaction, ctx: Context) -> PendingReply[Any]:
    one, transactions = requested.transaction, ctx.services.coordination.transactions
    producer = ProducerIdAndEpoch(one.producer_id, one.producer_epoch)
    if one.verify_only:
        return transactions.verify(one.transactional_id, producer, requested.partitions)
    # Brokers add partitions only for newer clients, which leave it to them (KIP-890).
    client_version = EPOCH_BUMP_VERSION if ctx.version >= 4 else 0
    added = frozenset(requested.partitions)
    return transactions.add(one.transactional_id, producer, added, client_version)


def result(requested: VerifiedTransaction, reply: object, ctx: Context) -> AddPartitionsToTxnResult:
    refused: dict[TopicPartition, KafkaError | None] = {}
    if requested.unknown:
        for each in requested.partitions:
            is_unknown = each in requested.unknown
            refused[each] = (UnknownTopicOrPartition if is_unknown else OperationNotAttempted)(each)
    elif isinstance(reply, tuple):
        refused = dict(zip(requested.partitions, reply, strict=True))
    elif isinstance(reply, KafkaError):
        refused = dict.fromkeys(requested.partitions, reply)

    def known_code(topic_partition: TopicPartition) -> int:
        return as_known(code_for(refused.get(topic_partition)), since=2, version=ctx.version)

    return AddPartitionsToTxnResult(
        transactional_id=requested.transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=known_code(TopicPartition(topic.name, index)),
                    )
                    for index in topic.partitions
                ],
            )
            for topic in requested.transaction.topics
        ],
    )
