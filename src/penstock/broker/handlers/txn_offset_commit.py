"""TxnOffsetCommit (key 28, v0-v6): offsets that count if the producer's transaction commits.

Refused: offsets of groups that are not in the transaction (from v5 on they are added);
members of another generation; partitions that do not exist; metadata that is too long.
"""

import asyncio
from collections.abc import Coroutine

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.transaction.verifier import Answers, as_producers_know_it
from penstock.broker.translate.commits import CommitTarget, codes, commit_targets
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from penstock.coordinator.group.consumer.errors import StaleMemberEpoch
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.result import Refused
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

CommitTargets = list[tuple[TxnOffsetCommitRequestTopic, list[CommitTarget]]]

BETWEEN_BROKERS = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors between brokers that clients do not know."""

KNOWN_AS: dict[type[KafkaError], ErrorCode] = {
    GroupIdNotFound: ErrorCode.ILLEGAL_GENERATION,
    StaleMemberEpoch: ErrorCode.ILLEGAL_GENERATION,
}


Offsets = tuple[tuple[TopicPartition, CommittedOffset], ...]
Answer = TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]


def txn_offset_commit(
    request: TxnOffsetCommitRequest, ctx: Context
) -> Answer | Coroutine[None, None, Answer]:
    image, by_id = ctx.services.cluster.image, ctx.version >= 6
    named: CommitTargets = [
        (topic, commit_targets(topic, image, by_id=by_id)) for topic in request.topics
    ]
    offsets = tuple(
        (target, committed(part, target, ctx))
        for topic, targets in named
        for part, target in zip(topic.partitions, targets, strict=True)
        if isinstance(target, TopicPartition)
    )
    if not offsets:
        return respond(named, ())
    index = ctx.services.coordination.groups.partition_of(request.group_id)
    answers = ctx.services.coordination.verifier.verify(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        (TopicPartition(CONSUMER_OFFSETS, index),),
        adds=ctx.version >= 5,
    )
    if isinstance(answers, tuple):
        return commit(request, named, offsets, answers, ctx)
    return asked_first(request, named, offsets, answers, ctx)


async def asked_first(
    request: TxnOffsetCommitRequest,
    named: CommitTargets,
    offsets: Offsets,
    answers: asyncio.Future[Answers],
    ctx: Context,
) -> Answer:
    """The transaction's coordinator is on another broker, or its record not committed yet."""
    services = ctx.services
    index = services.coordination.groups.partition_of(request.group_id)
    partition = services.replicas.partitions.find(CONSUMER_OFFSETS, index)
    if partition is None:
        refused = NotCoordinator(f"{CONSUMER_OFFSETS}-{index} is not here")
        return respond(named, (refused,) * len(offsets))
    verification = services.coordination.verifier.pending.begin(partition, request.producer_id)
    try:
        found = await answers
        if not verification.holds():
            found = (CoordinatorNotAvailable("a marker has come, or the group has moved"),)
        return commit(request, named, offsets, found, ctx)
    finally:
        services.coordination.verifier.pending.close(verification)


def commit(
    request: TxnOffsetCommitRequest,
    named: CommitTargets,
    offsets: Offsets,
    answers: Answers,
    ctx: Context,
) -> Answer:
    (refused,) = answers
    if refused is not None:
        known = as_committers_know_it(refused, ctx.version)
        return respond(named, (known,) * len(offsets))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    pending = ctx.services.coordination.groups.commit(
        request.group_id,
        Committer(
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            is_transactional=True,
        ),
        offsets,
        producer,
    )

    def finish(replies: list[tuple[Refused, ...] | KafkaError]) -> TxnOffsetCommitResponse:
        (reply,) = replies
        return respond(named, (reply,) * len(offsets) if isinstance(reply, KafkaError) else reply)

    return answered([pending], finish, ctx)


def as_committers_know_it(error: KafkaError, version: int) -> KafkaError:
    """Why these offsets are not in the transaction, as an error that group clients know."""
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # Only clients that add implicitly retry on this error.
        return error if version >= 5 else CoordinatorNotAvailable(str(error))
    if error.code is ErrorCode.NOT_COORDINATOR or error.code in BETWEEN_BROKERS:
        # The group has not moved: the client should retry here.
        return CoordinatorLoading(str(error))
    return as_producers_know_it(error, knows_abortable=version >= 4)


def committed(
    part: TxnOffsetCommitRequestPartition, topic_partition: TopicPartition, ctx: Context
) -> CommittedOffset:
    return CommittedOffset(
        part.committed_offset,
        part.committed_leader_epoch,
        part.committed_metadata or "",
        commit_ms=ctx.now_ms,
        topic_id=ctx.services.cluster.image.topics[topic_partition.topic].id,
    )


def respond(named: CommitTargets, replies: tuple[Refused, ...]) -> TxnOffsetCommitResponse:
    """Each partition with its result, in the order of the request."""
    code = codes(replies, KNOWN_AS)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=part.partition_index, error_code=code(target)
                    )
                    for part, target in zip(topic.partitions, targets, strict=True)
                ],
            )
            for topic, targets in named
        ]
    )
