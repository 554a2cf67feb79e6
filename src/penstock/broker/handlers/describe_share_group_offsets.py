"""DescribeShareGroupOffsets (key 90, v0-v1): the start offsets and the lag of share groups.

Without topics, all partitions that have state are listed. A group that does not exist has none.
"""

from collections.abc import Iterable

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.broker.share.log_ends import log_end
from penstock.broker.share.persister import PATIENCE_MS
from penstock.broker.share.state_calls import NOTHING_KNOWN, SummarizeState
from penstock.broker.translate.pending_replies import replied
from penstock.broker.translate.share_requests import not_served
from penstock.coordinator.group.errors import GroupIdNotFound, InvalidGroupId
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.share.state import NO_START, ShareGroupOffset, SharePartitionKey
from penstock.errors import KafkaError
from penstock.loop import with_turns
from penstock.types import NO_UUID, TopicPartition, Uuid
from penstock.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

UNKNOWN_LAG = -1


async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, ctx: Context
) -> DescribeShareGroupOffsetsResponse:
    # One deadline for all partitions: with one for each, the client would have given up long
    # before.
    until_ms = ctx.services.resources.clock.monotonic_ms() + PATIENCE_MS
    return DescribeShareGroupOffsetsResponse(
        groups=[await described(each, ctx, until_ms) for each in request.groups]
    )


async def described(
    asked: DescribeShareGroupOffsetsRequestGroup, ctx: Context, until_ms: int
) -> DescribeShareGroupOffsetsResponseGroup:
    name = asked.group_id
    try:
        refused = not_served(ctx)
        if refused is not None:
            raise refused
        group = await known_group(name, ctx)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=name, error_code=error.code, error_message=str(error)
        )
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=name,
        topics=[
            DescribeShareGroupOffsetsResponseTopic(
                topic,
                topic_id,
                [
                    await partition(group, topic, topic_id, index, ctx, until_ms)
                    async for index in with_turns(indexes, PARTITIONS_A_TURN)
                ],
            )
            async for topic, topic_id, indexes in with_turns(
                wanted(asked, group, ctx), PARTITIONS_A_TURN
            )
        ],
    )


async def known_group(name: str, ctx: Context) -> ShareGroup:
    """The group; one that does not exist has no offsets, which is not an error."""
    try:
        return await replied(ctx.services.coordination.groups.describe_share(name), ctx)
    except (GroupIdNotFound, InvalidGroupId):
        return ShareGroup(name)


def wanted(
    asked: DescribeShareGroupOffsetsRequestGroup, group: ShareGroup, ctx: Context
) -> Iterable[tuple[str, Uuid, list[int]]]:
    names = ctx.services.cluster.image.topic_names
    if asked.topics is None:
        for topic_id, (_, partitions) in group.initialized.items():
            if topic_id in names:
                yield names[topic_id], topic_id, sorted(partitions)
        return
    for topic in asked.topics:
        known = ctx.services.cluster.image.topics.get(topic.topic_name)
        yield topic.topic_name, NO_UUID if known is None else known.id, topic.partitions


async def partition(
    group: ShareGroup, topic: str, topic_id: Uuid, index: int, ctx: Context, until_ms: int
) -> DescribeShareGroupOffsetsResponsePartition:
    known = group.initialized.get(topic_id)
    state: ShareGroupOffset | EmptyReply | KafkaError = EmptyReply()
    if known is not None and index in known.partitions:
        key = SharePartitionKey(group.id, topic_id, index)
        state = await ctx.services.share.persister.call_with_retries(SummarizeState(key), until_ms)
    if isinstance(state, KafkaError):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=NO_START,
            error_code=state.code,
            error_message=str(state),
        )
    if isinstance(state, EmptyReply):
        state = NOTHING_KNOWN
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=state.start_offset,
        leader_epoch=max(state.leader_epoch, 0),
        lag=await lag(TopicPartition(topic, index), state, ctx),
    )


async def lag(topic_partition: TopicPartition, state: ShareGroupOffset, ctx: Context) -> int:
    """The number of unfinished records; -1 if it is unknown."""
    if state.start_offset == NO_START or state.delivery_complete_count < 0:
        return UNKNOWN_LAG
    services = ctx.services
    end = await log_end(
        topic_partition,
        services.replicas.partitions,
        services.cluster.image,
        services.share.persister.connection,
    )
    return UNKNOWN_LAG if end is None else end - state.start_offset - state.delivery_complete_count
