"""OffsetCommit (key 8, v2-v10): commit the offsets of a group.

Refused: members of another generation; partitions that do not exist; metadata that is too long.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.commits import CommitTarget, codes, commit_targets
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.errors import RecordTooLarge
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

CommitTargets = list[tuple[OffsetCommitRequestTopic, list[CommitTarget]]]

LONGEST_MS = 1 << 62
"""No offset is kept for longer: its time of expiry must fit into a record."""

KNOWN_AS: dict[type[KafkaError], ErrorCode] = {RecordTooLarge: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}


def offset_commit(
    request: OffsetCommitRequest, ctx: Context
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    image, by_id = ctx.services.cluster.image, ctx.version >= 10
    named: CommitTargets = [
        (topic, commit_targets(topic, image, by_id=by_id)) for topic in request.topics
    ]
    offsets = tuple(
        (target, committed(part, target, request, ctx))
        for topic, targets in named
        for part, target in zip(topic.partitions, targets, strict=True)
        if isinstance(target, TopicPartition)
    )
    if not offsets:
        return respond(named, ())
    pending = ctx.services.coordination.groups.commit(
        request.group_id,
        Committer(
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            knows_epochs=ctx.version >= 9,
        ),
        offsets,
    )

    def finish(replies: list[tuple[Refused, ...] | KafkaError]) -> OffsetCommitResponse:
        (reply,) = replies
        return respond(named, (reply,) * len(offsets) if isinstance(reply, KafkaError) else reply)

    return answered([pending], finish, ctx)


def committed(
    part: OffsetCommitRequestPartition,
    topic_partition: TopicPartition,
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
        topic_id=ctx.services.cluster.image.topics[topic_partition.topic].id,
    )


def respond(named: CommitTargets, replies: tuple[Refused, ...]) -> OffsetCommitResponse:
    """Each partition with its result, in the order of the request."""
    code = codes(replies, KNOWN_AS)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=part.partition_index, error_code=code(target)
                    )
                    for part, target in zip(topic.partitions, targets, strict=True)
                ],
            )
            for topic, targets in named
            if targets
        ]
    )
