"""TxnOffsetCommit (key 28, v0-v6): offsets that take effect if the producer's transaction commits.

Refused: offsets of groups that are not in the transaction (from v5 on they are added); members of
another generation; partitions that do not exist; metadata that is too long; more than 20,000
offsets or 4 MiB of them in one request, or more than fit into one batch.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import TypeAlias

from penstock.broker.context import Context
from penstock.broker.handling.slots import outside_slot
from penstock.broker.handling.turns import PARTITIONS_A_TURN, are_many, at_once, by_topic, turns
from penstock.broker.parked import Parked
from penstock.broker.transaction.verifier import Answers, error_for_producer
from penstock.broker.translate.commits import (
    CommitTarget,
    Offsets,
    all_targets,
    codes,
    each_target,
    without_deleted,
)
from penstock.broker.translate.pending_replies import MOST_AT_ONCE, answered, answered_in_turns
from penstock.coordinator.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    CoordinatorRecordTooLarge,
    NotCoordinator,
)
from penstock.coordinator.group.consumer.errors import StaleMemberEpoch
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.result import PendingReply, Refused
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

CommitTargets: TypeAlias = list[tuple[TxnOffsetCommitRequestTopic, list[CommitTarget]]]

BETWEEN_BROKERS = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors between brokers that clients do not know."""

KNOWN_AS: dict[type[KafkaError], ErrorCode] = {
    GroupIdNotFound: ErrorCode.ILLEGAL_GENERATION,
    CoordinatorRecordTooLarge: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    StaleMemberEpoch: ErrorCode.ILLEGAL_GENERATION,
}

Committed: TypeAlias = tuple[Refused, ...] | KafkaError
Pending: TypeAlias = PendingReply[tuple[Refused, ...]] | KafkaError
Answer: TypeAlias = TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]


def txn_offset_commit(
    request: TxnOffsetCommitRequest, ctx: Context
) -> Answer | Coroutine[None, None, Answer]:
    if are_many(request.topics, lambda topic: topic.partitions):
        return committed_in_turns(request, ctx)
    named, offsets = at_once(requested(request, ctx))
    if not offsets:
        return at_once(respond(named, offsets, ()))
    answers = verified(request, ctx)
    if isinstance(answers, tuple):
        return answered_at_once(named, offsets, commit(request, offsets, answers, ctx), ctx)
    return commit_once_verified(request, named, offsets, answers, ctx)


async def committed_in_turns(request: TxnOffsetCommitRequest, ctx: Context) -> Answer:
    """Work in turns, except that all offsets go into one batch."""
    named, offsets = await turns(requested(request, ctx))
    if not offsets:
        return await turns(respond(named, offsets, ()))
    answers = verified(request, ctx)
    if isinstance(answers, tuple):
        named, offsets, pending = commit_existing(request, named, offsets, answers, ctx)
    else:
        named, offsets, pending = await commit_after(answers, request, named, offsets, ctx)
    if isinstance(pending, KafkaError):
        return await turns(respond(named, offsets, pending))
    return await answered_in_turns(
        [pending],
        lambda replies: respond(named, offsets, replies[0]),
        max(len(named), len(offsets)),
        ctx,
    )


def requested(
    request: TxnOffsetCommitRequest, ctx: Context
) -> Generator[None, None, tuple[CommitTargets, Offsets]]:
    """The targets, and an offset for each existing one."""
    image = ctx.services.cluster.image
    by_id = ctx.version >= 6
    named = yield from all_targets(request.group_id, request.topics, image, ctx, by_id=by_id)
    offsets: list[tuple[TopicPartition, CommittedOffset]] = []
    for part, target in each_target(named):
        if isinstance(target, TopicPartition):
            offsets.append((target, committed(part, image.topics[target.topic].id, ctx)))
            if len(offsets) % PARTITIONS_A_TURN == 0:
                yield
    return named, tuple(offsets)


def verified(request: TxnOffsetCommitRequest, ctx: Context) -> Answers | asyncio.Future[Answers]:
    index = ctx.services.coordination.groups.partition_of(request.group_id)
    return ctx.services.coordination.verifier.verify(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        (TopicPartition(CONSUMER_OFFSETS, index),),
        adds=ctx.version >= 5,
    )


async def commit_once_verified(
    request: TxnOffsetCommitRequest,
    named: CommitTargets,
    offsets: Offsets,
    answers: asyncio.Future[Answers],
    ctx: Context,
) -> Answer:
    named, offsets, pending = await commit_after(answers, request, named, offsets, ctx)
    return answered_at_once(named, offsets, pending, ctx)


async def commit_after(
    answers: asyncio.Future[Answers],
    request: TxnOffsetCommitRequest,
    named: CommitTargets,
    offsets: Offsets,
    ctx: Context,
) -> tuple[CommitTargets, Offsets, Pending]:
    """Commit after the transaction coordinator has answered: it is on another broker, or its record
    is not committed yet.
    """
    services = ctx.services
    index = services.coordination.groups.partition_of(request.group_id)
    partition = services.replicas.partitions.find(CONSUMER_OFFSETS, index)
    if partition is None:
        return named, offsets, NotCoordinator(f"{CONSUMER_OFFSETS}-{index} is not here")
    verification = services.coordination.verifier.pending.begin(partition, request.producer_id)
    try:
        # As with commits that wait for replicas, only very long ones keep their slot.
        is_long = max(len(named), len(offsets)) > MOST_AT_ONCE
        found = await (answers if is_long else outside_slot(answers))
        if not verification.holds():
            found = (CoordinatorNotAvailable("a marker has come, or the group has moved"),)
        return commit_existing(request, named, offsets, found, ctx)
    finally:
        services.coordination.verifier.pending.close(verification)


def commit_existing(
    request: TxnOffsetCommitRequest,
    named: CommitTargets,
    offsets: Offsets,
    answers: Answers,
    ctx: Context,
) -> tuple[CommitTargets, Offsets, Pending]:
    """Commit after turns or a wait, without targets that were deleted meanwhile."""
    image, by_id = ctx.services.cluster.image, ctx.version >= 6
    named, offsets = without_deleted(named, offsets, image, by_id=by_id)
    return named, offsets, commit(request, offsets, answers, ctx)


def answered_at_once(
    named: CommitTargets,
    offsets: Offsets,
    pending: Pending,
    ctx: Context,
) -> Answer:
    if isinstance(pending, KafkaError):
        return at_once(respond(named, offsets, pending))
    return answered([pending], lambda replies: at_once(respond(named, offsets, replies[0])), ctx)


def commit(
    request: TxnOffsetCommitRequest, offsets: Offsets, answers: Answers, ctx: Context
) -> Pending:
    (refused,) = answers
    if refused is not None:
        return error_for_committer(refused, ctx.version)
    return ctx.services.coordination.groups.commit(
        request.group_id,
        Committer(
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            is_transactional=True,
        ),
        offsets,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
    )


def error_for_committer(error: KafkaError, version: int) -> KafkaError:
    """The verification error as one that group clients know."""
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # Only clients whose commits add the group (v5) retry on this error.
        return error if version >= 5 else CoordinatorNotAvailable(str(error))
    if error.code is ErrorCode.NOT_COORDINATOR or error.code in BETWEEN_BROKERS:
        # The group has not moved: the client should retry here.
        return CoordinatorLoading(str(error))
    return error_for_producer(error, knows_abortable=version >= 4)


def committed(
    part: TxnOffsetCommitRequestPartition, topic_id: Uuid, ctx: Context
) -> CommittedOffset:
    return CommittedOffset(
        part.committed_offset,
        part.committed_leader_epoch,
        part.committed_metadata or "",
        commit_ms=ctx.now_ms,
        topic_id=topic_id,
    )


def respond(
    named: CommitTargets, offsets: Offsets, reply: Committed
) -> Generator[None, None, TxnOffsetCommitResponse]:
    """Each partition with its result, in the order of the request."""
    code = codes((reply,) * len(offsets) if isinstance(reply, KafkaError) else reply, KNOWN_AS)
    topics = yield from by_topic(
        named,
        lambda each: zip(each[0].partitions, each[1], strict=True),
        lambda _, part: TxnOffsetCommitResponsePartition(
            partition_index=part[0].partition_index, error_code=code(part[1])
        ),
        lambda each, parts: TxnOffsetCommitResponseTopic(
            name=each[0].name, topic_id=each[0].topic_id, partitions=parts
        ),
    )
    return TxnOffsetCommitResponse(topics=topics)
