"""OffsetCommit (key 8, v2-v10): commit the offsets of a group.

Refused: members of another generation; partitions that do not exist; metadata that is too long;
more than 20,000 offsets or 4 MiB of them in one request, or more than fit into one batch.
"""

from collections.abc import Coroutine, Generator
from typing import Any, TypeAlias

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, are_many, at_once, by_topic, turns
from penstock.broker.parked import Parked
from penstock.broker.translate.commits import (
    CommitTarget,
    Offsets,
    all_targets,
    codes,
    each_target,
    without_deleted,
)
from penstock.broker.translate.pending_replies import answered, answered_in_turns
from penstock.coordinator.errors import CoordinatorRecordTooLarge
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.result import PendingReply, Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

CommitTargets: TypeAlias = list[tuple[OffsetCommitRequestTopic, list[CommitTarget]]]
Committed: TypeAlias = tuple[Refused, ...] | KafkaError
Reply: TypeAlias = OffsetCommitResponse | Parked[OffsetCommitResponse]

LONGEST_MS = 1 << 62
"""The longest retention of an offset: its expiry must fit into a record."""

KNOWN_AS: dict[type[KafkaError], ErrorCode] = {
    CoordinatorRecordTooLarge: ErrorCode.INVALID_COMMIT_OFFSET_SIZE
}


def offset_commit(request: OffsetCommitRequest, ctx: Context) -> Reply | Coroutine[Any, Any, Reply]:
    if are_many(request.topics, lambda topic: topic.partitions):
        return committed_in_turns(request, ctx)
    named, offsets = at_once(requested(request, ctx))
    if not offsets:
        return at_once(respond(named, offsets, ()))
    return answered(
        [commit(request, offsets, ctx)],
        lambda replies: at_once(respond(named, offsets, noted(replies[0], request, ctx))),
        ctx,
    )


async def committed_in_turns(request: OffsetCommitRequest, ctx: Context) -> Reply:
    """Work in turns, except that all offsets go into one batch."""
    named, offsets = await turns(requested(request, ctx))
    image, by_id = ctx.services.cluster.image, ctx.version >= 10
    named, offsets = without_deleted(named, offsets, image, by_id=by_id)
    if not offsets:
        return await turns(respond(named, offsets, ()))
    return await answered_in_turns(
        [commit(request, offsets, ctx)],
        lambda replies: respond(named, offsets, noted(replies[0], request, ctx)),
        max(len(named), len(offsets)),
        ctx,
    )


def requested(
    request: OffsetCommitRequest, ctx: Context
) -> Generator[None, None, tuple[CommitTargets, Offsets]]:
    """The targets, and an offset for each existing one."""
    image = ctx.services.cluster.image
    by_id = ctx.version >= 10
    named = yield from all_targets(request.group_id, request.topics, image, ctx, by_id=by_id)
    offsets: list[tuple[TopicPartition, CommittedOffset]] = []
    for part, target in each_target(named):
        if isinstance(target, TopicPartition):
            topic_id = image.topics[target.topic].id
            offsets.append((target, committed(part, topic_id, request, ctx)))
            if len(offsets) % PARTITIONS_A_TURN == 0:
                yield
    return named, tuple(offsets)


def commit(
    request: OffsetCommitRequest, offsets: Offsets, ctx: Context
) -> PendingReply[tuple[Refused, ...]]:
    return ctx.services.coordination.groups.commit(
        request.group_id,
        Committer(
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            knows_epochs=ctx.version >= 9,
        ),
        offsets,
    )


def noted(reply: Committed, request: OffsetCommitRequest, ctx: Context) -> Committed:
    """The reply; a refusal is recorded, to be shown with the group's lag."""
    if isinstance(reply, KafkaError):
        ctx.services.coordination.groups.refused_commits.add(
            request.group_id, ctx.header.client_id or "", reply.code, ctx.now_ms
        )
    return reply


def committed(
    part: OffsetCommitRequestPartition,
    topic_id: Uuid,
    request: OffsetCommitRequest,
    ctx: Context,
) -> CommittedOffset:
    kept_ms = min(request.retention_time_ms, LONGEST_MS)
    return CommittedOffset(
        part.committed_offset,
        part.committed_leader_epoch,
        part.committed_metadata or "",
        commit_ms=ctx.now_ms,
        expire_ms=-1 if kept_ms < 0 else ctx.now_ms + kept_ms,
        topic_id=topic_id,
    )


def respond(
    named: CommitTargets, offsets: Offsets, reply: Committed
) -> Generator[None, None, OffsetCommitResponse]:
    """Each partition with its result, in the order of the request."""
    code = codes((reply,) * len(offsets) if isinstance(reply, KafkaError) else reply, KNOWN_AS)
    topics = yield from by_topic(
        ((topic, targets) for topic, targets in named if targets),
        lambda each: zip(each[0].partitions, each[1], strict=True),
        lambda _, part: OffsetCommitResponsePartition(
            partition_index=part[0].partition_index, error_code=code(part[1])
        ),
        lambda each, parts: OffsetCommitResponseTopic(
            name=each[0].name, topic_id=each[0].topic_id, partitions=parts
        ),
    )
    return OffsetCommitResponse(topics=topics)
