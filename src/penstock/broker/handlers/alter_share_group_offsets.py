"""AlterShareGroupOffsets (key 91, v0): set where a share group starts; it must have no members.

Earlier decisions of members in these partitions are dropped. A group that does not exist is
created.
Refused: groups that have members, partitions that do not exist.
"""

from penstock.broker.context import Context
from penstock.broker.translate.pending_replies import replied
from penstock.broker.translate.share_groups import initialize, lock_of
from penstock.broker.translate.share_requests import not_served
from penstock.coordinator.group.errors import InvalidGroupId
from penstock.coordinator.group.share.member import StateTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.types import NO_UUID, Uuid
from penstock.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

UNKNOWN_TOPIC = "This server does not host this topic-partition."


async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, ctx: Context
) -> AlterShareGroupOffsetsResponse:
    try:
        refused = not_served(ctx)
        if refused is not None:
            raise refused
        if not request.group_id:
            raise InvalidGroupId("The group id is invalid.")
        async with lock_of(request.group_id, ctx):
            return await altered(request, ctx)
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


async def altered(
    request: AlterShareGroupOffsetsRequest, ctx: Context
) -> AlterShareGroupOffsetsResponse:
    await replied(
        ctx.services.coordination.groups.next_share_epoch(request.group_id, creates=True), ctx
    )
    known = ctx.services.cluster.image.topics
    topics: dict[Uuid, StateTopic] = {}
    starts: dict[tuple[Uuid, int], int] = {}
    for topic in request.topics:
        found = known.get(topic.topic_name)
        if found is None:
            continue
        there = {
            each.partition_index: each.start_offset
            for each in topic.partitions
            if each.partition_index in found.partitions
        }
        named = topics.get(found.id)  # a request may name a topic twice
        partitions = frozenset(there) | (named.partitions if named else frozenset())
        topics[found.id] = StateTopic(topic.topic_name, partitions)
        starts.update({(found.id, index): start for index, start in there.items()})
    failed = await initialize(request.group_id, topics, ctx, starts)

    def result(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
        found = known.get(topic.topic_name)
        topic_id = NO_UUID if found is None else found.id
        parts = []
        for each in topic.partitions:
            index = each.partition_index
            error = failed.get((topic_id, index))
            code, message = ErrorCode.NONE, None
            if (topic_id, index) not in starts:
                code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC
            elif error is not None:
                code, message = error.code, str(error)
            parts.append(AlterShareGroupOffsetsResponsePartition(index, code, message))
        return AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, parts)

    return AlterShareGroupOffsetsResponse(responses=[result(each) for each in request.topics])
