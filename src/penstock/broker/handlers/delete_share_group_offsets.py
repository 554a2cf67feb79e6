"""DeleteShareGroupOffsets (key 92, v0): delete a share group's state in topics.

Refused: groups that do not exist or have members, topics that do not exist.
"""

from penstock.broker.context import Context
from penstock.broker.translate.pending_replies import replied
from penstock.broker.translate.share_groups import delete_state, lock_of
from penstock.broker.translate.share_requests import not_served
from penstock.coordinator.group.errors import InvalidGroupId
from penstock.coordinator.group.share.group import ShareGroup
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

UNKNOWN_TOPIC = "This server does not host this topic-partition."


async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, ctx: Context
) -> DeleteShareGroupOffsetsResponse:
    groups = ctx.services.coordination.groups
    try:
        refused = not_served(ctx)
        if refused is not None:
            raise refused
        if not request.group_id:
            raise InvalidGroupId("The group id is invalid.")
        async with lock_of(request.group_id, ctx):
            group = await replied(groups.next_share_epoch(request.group_id), ctx)
            results = [await deleted(group, each.topic_name, ctx) for each in request.topics]
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))
    return DeleteShareGroupOffsetsResponse(responses=results)


async def deleted(
    group: ShareGroup, name: str, ctx: Context
) -> DeleteShareGroupOffsetsResponseTopic:
    topic = ctx.services.cluster.image.topics.get(name)
    if topic is None:
        return DeleteShareGroupOffsetsResponseTopic(
            topic_name=name,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=UNKNOWN_TOPIC,
        )
    known = group.initialized.get(topic.id)
    if known is not None:
        refused = await delete_state(group.id, {topic.id: known}, ctx)
        if refused is not None:
            return DeleteShareGroupOffsetsResponseTopic(name, topic.id, refused.code, str(refused))
    return DeleteShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic.id)
