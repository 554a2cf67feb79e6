"""OffsetFetch (key 9, v1-v10): committed offsets of some partitions or all, for many groups.

A partition without an offset has -1 and no error. With `require_stable` (v7), a partition whose
offset an open transaction may change has an error that makes the client retry.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.group.consumer.offsets import OffsetReader
from penstock.coordinator.group.errors import UnstableOffsetCommit
from penstock.coordinator.group.offsets import CommittedOffset, FetchedOffsets
from penstock.errors import ErrorCode, KafkaError
from penstock.types import NO_UUID, TopicPartition, Uuid, indexes_by_topic
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

R = TypeVar("R")

NO_OFFSET = CommittedOffset(-1)
MANY_NAMES: Final = 500
"""Topics and partitions of all groups; a request with more is handled in turns."""


Found = list[OffsetFetchResponseGroup]


def offset_fetch(
    request: OffsetFetchRequest, ctx: Context
) -> OffsetFetchResponse | Parked[OffsetFetchResponse] | Coroutine[Any, Any, OffsetFetchResponse]:
    if name_many(request.groups if ctx.version >= 8 else (request,)):
        return of_many(request, ctx)
    groups = request.groups if ctx.version >= 8 else [as_group(request)]
    return fetched(groups, lambda found: response(found, ctx), request, ctx)


def name_many(groups: Iterable[OffsetFetchRequestGroup | OffsetFetchRequest]) -> bool:
    count = 0
    for group in groups:
        for topic in group.topics or ():
            count += 1 + len(topic.partition_indexes)
            if count > MANY_NAMES:
                return True
    return False


def fetched(
    groups: Sequence[OffsetFetchRequestGroup],
    respond: Callable[[Found], R],
    request: OffsetFetchRequest,
    ctx: Context,
) -> R | Parked[R]:
    pending_replies = [
        ctx.services.coordination.groups.fetch(
            group.group_id,
            wanted(group.topics, ctx),
            reader(group),
            require_stable=request.require_stable,
        )
        for group in groups
    ]

    def replied(replies: list[FetchedOffsets | KafkaError]) -> R:
        return respond(
            [response_group(group, each, ctx) for group, each in zip(groups, replies, strict=True)]
        )

    return answered(pending_replies, replied, ctx)


async def of_many(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse:
    """Look up some partitions of a group at a time, with other requests in between."""
    if ctx.version < 8:
        group = OffsetFetchRequestGroup(group_id=request.group_id)
        code, topics = await of_group(group, request.topics, request, ctx)
        return OffsetFetchResponse(error_code=code if ctx.version >= 2 else 0, topics=topics)
    groups = []
    for each in request.groups:
        code, topics = await of_group(each, each.topics, request, ctx)
        groups.append(
            OffsetFetchResponseGroup(group_id=each.group_id, topics=topics, error_code=code)
        )
    return OffsetFetchResponse(groups=groups)


async def of_group(
    group: OffsetFetchRequestGroup,
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
    request: OffsetFetchRequest,
    ctx: Context,
) -> tuple[int, list[Any]]:
    """The group's error, and its topics in the format of this response version."""
    code = 0
    response_topics: list[Any] = []
    for some, is_rest in cut(topics) if topics else ((topics, False),):
        reply = fetched([replace(group, topics=some)], lambda found: found[0], request, ctx)
        part = await ctx.services.waiters.future(reply) if isinstance(reply, Parked) else reply
        await asyncio.sleep(0)
        code = part.error_code
        if code and ctx.version >= 2:
            return code, []
        found: list[Any] = part.topics if ctx.version >= 8 else single_topics(part.topics)
        if is_rest:
            response_topics[-1].partitions.extend(found.pop(0).partitions)
        response_topics += found
    return code, response_topics


def cut(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics],
) -> Iterator[tuple[list[OffsetFetchRequestTopics], bool]]:
    """Pieces of the list, and whether a piece begins with the rest of the topic before."""
    piece: list[OffsetFetchRequestTopics] = []
    room, is_rest = MANY_NAMES, False
    for topic in topics:
        indexes = topic.partition_indexes
        at = 0
        while True:
            some = indexes[at : at + room]
            piece.append(with_indexes(topic, some))
            at += len(some)
            room -= 1 + len(some)
            if room > 0:
                break
            yield piece, is_rest
            piece, room, is_rest = [], MANY_NAMES, at < len(indexes)
            if not is_rest:
                break
    if piece:
        yield piece, is_rest


def with_indexes(
    topic: OffsetFetchRequestTopic | OffsetFetchRequestTopics, indexes: list[int]
) -> OffsetFetchRequestTopics:
    if isinstance(topic, OffsetFetchRequestTopics):
        return replace(topic, partition_indexes=indexes)
    return OffsetFetchRequestTopics(name=topic.name, partition_indexes=indexes)


def response(found: Found, ctx: Context) -> OffsetFetchResponse:
    if ctx.version >= 8:
        return OffsetFetchResponse(groups=found)
    (group,) = found
    code = group.error_code if ctx.version >= 2 else 0
    return OffsetFetchResponse(error_code=code, topics=single_topics(group.topics))


def as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The single group of an older version's request."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def reader(group: OffsetFetchRequestGroup) -> OffsetReader:
    return OffsetReader(member_id=group.member_id or "", epoch=group.member_epoch)


def wanted(
    topics: list[OffsetFetchRequestTopics] | None, ctx: Context
) -> list[TopicPartition] | None:
    if topics is None:
        return None
    return [
        TopicPartition(name, index)
        for topic in topics
        if (name := name_of(topic, ctx)) is not None
        for index in topic.partition_indexes
    ]


def name_of(topic: OffsetFetchRequestTopics, ctx: Context) -> str | None:
    """The topic's name; None for an unknown id."""
    if ctx.version < 10:
        return topic.name
    return ctx.services.cluster.image.topic_names.get(topic.topic_id)


def response_group(
    group: OffsetFetchRequestGroup, reply: FetchedOffsets | KafkaError, ctx: Context
) -> OffsetFetchResponseGroup:
    if isinstance(reply, KafkaError):
        return OffsetFetchResponseGroup(
            group_id=group.group_id,
            error_code=reply.code,
            topics=[refused(topic, reply.code) for topic in group.topics or []]
            if ctx.version < 2
            else [],
        )
    topics = every(reply, ctx) if group.topics is None else group.topics
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[response_topic(each, reply, ctx) for each in topics],
    )


def every(offsets: Iterable[TopicPartition], ctx: Context) -> list[OffsetFetchRequestTopics]:
    """All partitions with an offset, as if the request named them."""
    by_topic = indexes_by_topic(offsets)
    if ctx.version < 10:
        return [OffsetFetchRequestTopics(name, NO_UUID, each) for name, each in by_topic.items()]
    # This version cannot express a topic without an id.
    known = ctx.services.cluster.image.topics
    return [
        OffsetFetchRequestTopics(name, known[name].id, indexes)
        for name, indexes in by_topic.items()
        if name in known
    ]


def response_topic(
    topic: OffsetFetchRequestTopics, offsets: FetchedOffsets, ctx: Context
) -> OffsetFetchResponseTopics:
    name = name_of(topic, ctx)
    if name is None:
        return refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)
    known = ctx.services.cluster.image.topics.get(name)
    topic_id = NO_UUID if known is None else known.id
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            response_partition(index, offsets.get(TopicPartition(name, index)), topic_id)
            for index in topic.partition_indexes
        ],
    )


def response_partition(
    index: int,
    committed: CommittedOffset | UnstableOffsetCommit | None,
    topic_id: Uuid,
) -> OffsetFetchResponsePartitions:
    if isinstance(committed, UnstableOffsetCommit):
        return refused_partition(index, committed.code)
    found = committed or NO_OFFSET
    if NO_UUID not in {topic_id, found.topic_id} and found.topic_id != topic_id:
        # It belongs to a deleted topic of this name; a failed coordinator may not have removed it.
        found = NO_OFFSET
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def refused_partition(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=-1, error_code=code
    )


def refused(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[refused_partition(index, code) for index in topic.partition_indexes],
    )


def single_topics(topics: Iterable[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopic]:
    """The topics in the format of versions before 8, which have one group."""
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
