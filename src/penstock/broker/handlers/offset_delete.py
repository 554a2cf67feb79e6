"""OffsetDelete (key 47, v0): delete offsets of a group, for topics that none of its members read.

Refused: groups that do not exist; partitions that do not exist; topics that members read.
"""

from collections.abc import Coroutine, Generator
from typing import Any, TypeAlias

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, are_many, at_once, by_topic, turns
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, answered_in_turns, code_for
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Wanted: TypeAlias = tuple[TopicPartition, ...]
Deleted: TypeAlias = tuple[Refused, ...] | KafkaError
Reply: TypeAlias = OffsetDeleteResponse | Parked[OffsetDeleteResponse]


def offset_delete(request: OffsetDeleteRequest, ctx: Context) -> Reply | Coroutine[Any, Any, Reply]:
    groups = ctx.services.coordination.groups
    if are_many(request.topics, lambda topic: topic.partitions):
        return deleted_in_turns(request, ctx)
    wanted, _ = at_once(existing(request, ctx))
    return answered(
        [groups.delete_offsets(request.group_id, wanted)],
        lambda replies: at_once(respond(request, wanted, replies[0])),
        ctx,
    )


async def deleted_in_turns(request: OffsetDeleteRequest, ctx: Context) -> Reply:
    """Work in turns, except that all tombstones go into one batch."""
    wanted, items = await turns(existing(request, ctx))
    return await answered_in_turns(
        [ctx.services.coordination.groups.delete_offsets(request.group_id, wanted)],
        lambda replies: respond(request, wanted, replies[0]),
        items,
        ctx,
    )


def existing(
    request: OffsetDeleteRequest, ctx: Context
) -> Generator[None, None, tuple[Wanted, int]]:
    """Each existing partition once, and the number of named topics and partitions."""
    image = ctx.services.cluster.image
    found: dict[TopicPartition, None] = {}
    count = 0
    for topic in request.topics:
        count += 1
        if count % PARTITIONS_A_TURN == 0:
            yield
        for part in topic.partitions:
            topic_partition = TopicPartition(topic.name, part.partition_index)
            if image.partition(topic_partition):
                found[topic_partition] = None
            count += 1
            if count % PARTITIONS_A_TURN == 0:
                yield
    return tuple(found), count


def respond(
    request: OffsetDeleteRequest, wanted: Wanted, reply: Deleted
) -> Generator[None, None, OffsetDeleteResponse]:
    if isinstance(reply, KafkaError):
        return OffsetDeleteResponse(error_code=reply.code)
    codes = dict(zip(wanted, map(code_for, reply), strict=True))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topics = yield from by_topic(
        request.topics,
        lambda topic: topic.partitions,
        lambda topic, part: OffsetDeleteResponsePartition(
            partition_index=part.partition_index,
            error_code=codes.get(TopicPartition(topic.name, part.partition_index), unknown),
        ),
        lambda topic, parts: OffsetDeleteResponseTopic(name=topic.name, partitions=parts),
    )
    return OffsetDeleteResponse(topics=topics)
