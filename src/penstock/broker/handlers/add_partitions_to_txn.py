"""AddPartitionsToTxn (key 24, v0-v5): adds partitions that a producer is about to write to.

Clients send one transaction (up to v3). Brokers send many, and may only verify that the partitions
are in the transaction. Refused: partitions that do not exist, and with them all others of the
transaction.
"""

from collections.abc import Coroutine, Generator, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import msgspec

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, are_many, at_once, by_topic, turns
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, answered_in_turns, code_for
from penstock.broker.translate.producers import WAIT_MS, code_for_version
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
    AddPartitionsToTxnTopic,
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
    """One transaction of a request, with the partitions that do not exist."""

    transaction: AddPartitionsToTxnTransaction
    partitions: tuple[TopicPartition, ...]
    unknown: AbstractSet[TopicPartition]
    items: int
    """The number of named topics and partitions, repetitions included."""


Reply: TypeAlias = AddPartitionsToTxnResponse | Parked[AddPartitionsToTxnResponse]


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, ctx: Context
) -> Reply | Coroutine[Any, Any, Reply]:
    requested = [as_one(request)] if ctx.version < 4 else request.transactions
    if any(are_many(each.topics, lambda topic: topic.partitions) for each in requested):
        return added_in_turns(requested, ctx)
    found = [at_once(checked(each, ctx)) for each in requested]
    return answered(
        asked(found, ctx),
        lambda replies: at_once(respond(found, replies, ctx)),
        ctx,
        WAIT_MS,
        ctx.services.coordination.transactions.runtime,
    )


async def added_in_turns(requested: Sequence[AddPartitionsToTxnTransaction], ctx: Context) -> Reply:
    """Work in turns, except that each transaction gets all its partitions in one record."""
    found = [await turns(checked(each, ctx)) for each in requested]
    return await answered_in_turns(
        asked(found, ctx),
        lambda replies: respond(found, replies, ctx),
        sum(each.items for each in found),
        ctx,
        WAIT_MS,
        ctx.services.coordination.transactions.runtime,
    )


def asked(requested: Sequence[VerifiedTransaction], ctx: Context) -> list[PendingReply[Any]]:
    """The coordinator's pending replies, for each transaction without unknown partitions."""
    return [pending(each, ctx) for each in requested if not each.unknown]


def respond(
    requested: Sequence[VerifiedTransaction], replies: Iterable[object], ctx: Context
) -> Generator[None, None, AddPartitionsToTxnResponse]:
    rest = iter(replies)
    results = []
    for each in requested:
        reply = None if each.unknown else next(rest)
        results.append((yield from result(each, reply, ctx)))
    if ctx.version < 4:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def as_one(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    """The single transaction of an older version's request."""
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def checked(
    transaction: AddPartitionsToTxnTransaction, ctx: Context
) -> Generator[None, None, VerifiedTransaction]:
    image = ctx.services.cluster.image
    partitions: dict[TopicPartition, None] = {}  # each once: the cluster does not have very many
    unknown: set[TopicPartition] = set()
    count = 0
    for topic in transaction.topics:
        count += 1
        if count % PARTITIONS_A_TURN == 0:
            yield
        for index in topic.partitions:
            topic_partition = TopicPartition(topic.name, index)
            partitions[topic_partition] = None
            if image.partition(topic_partition) is None:
                unknown.add(topic_partition)
            count += 1
            if count % PARTITIONS_A_TURN == 0:
                yield
    return VerifiedTransaction(transaction, tuple(partitions), unknown, count)


def pending(requested: VerifiedTransaction, ctx: Context) -> PendingReply[Any]:
    one, transactions = requested.transaction, ctx.services.coordination.transactions
    producer = ProducerIdAndEpoch(one.producer_id, one.producer_epoch)
    if one.verify_only:
        return transactions.verify(one.transactional_id, producer, requested.partitions)
    # Brokers add partitions only for newer clients, which do not add them themselves (KIP-890).
    client_version = EPOCH_BUMP_VERSION if ctx.version >= 4 else 0
    added = frozenset(requested.partitions)
    return transactions.add(one.transactional_id, producer, added, client_version)


def result(
    requested: VerifiedTransaction, reply: object, ctx: Context
) -> Generator[None, None, AddPartitionsToTxnResult]:
    verified: dict[TopicPartition, KafkaError | None] = {}
    if isinstance(reply, tuple):
        verified = dict(zip(requested.partitions, reply, strict=True))

    def code(topic_partition: TopicPartition) -> ErrorCode:
        if topic_partition in requested.unknown:
            return UnknownTopicOrPartition.code
        if requested.unknown:
            return OperationNotAttempted.code
        if isinstance(reply, KafkaError):
            return reply.code
        return code_for(verified.get(topic_partition))

    def known(topic: AddPartitionsToTxnTopic, index: int) -> AddPartitionsToTxnPartitionResult:
        found = code_for_version(
            code(TopicPartition(topic.name, index)), since=2, version=ctx.version
        )
        return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=found)

    topics = yield from by_topic(
        requested.transaction.topics,
        lambda topic: topic.partitions,
        known,
        lambda topic, parts: AddPartitionsToTxnTopicResult(
            name=topic.name, results_by_partition=parts
        ),
    )
    return AddPartitionsToTxnResult(
        transactional_id=requested.transaction.transactional_id, topic_results=topics
    )
