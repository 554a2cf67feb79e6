"""OffsetForLeaderEpoch (key 23, v2-v4): the end of a leader epoch, for truncation (KIP-320)."""

from collections.abc import Coroutine, Generator
from typing import Any

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import by_topic, in_turns
from penstock.replication.partition_lookup import partition_here
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, ctx: Context
) -> OffsetForLeaderEpochResponse | Coroutine[Any, Any, OffsetForLeaderEpochResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: OffsetForLeaderEpochRequest, ctx: Context
) -> Generator[None, None, OffsetForLeaderEpochResponse]:
    def answer(topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            services = ctx.services
            partition = partition_here(
                services.replicas.partitions, services.cluster.image, topic, part.partition
            )
            partition.check_leader(part.current_leader_epoch)
            epoch, end_offset = partition.log.offset_for_leader_epoch(part.leader_epoch)
        except PARTITION_ERRORS as error:
            return EpochEndOffset(partition=part.partition, error_code=code_of(error))
        return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)

    topics = yield from by_topic(
        request.topics,
        lambda topic: topic.partitions,
        lambda topic, part: answer(topic.topic, part),
        lambda topic, parts: OffsetForLeaderTopicResult(topic=topic.topic, partitions=parts),
    )
    return OffsetForLeaderEpochResponse(topics=topics)
