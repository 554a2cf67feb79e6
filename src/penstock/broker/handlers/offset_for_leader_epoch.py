"""OffsetForLeaderEpoch (key 23, v2-v4): the end of a leader epoch, for truncation (KIP-320)."""

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.replication import fencing
from penstock.replication.partitions import partition_here
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, ctx: Context
) -> OffsetForLeaderEpochResponse:
    def answer(topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            services = ctx.services
            partition = partition_here(
                services.replicas.partitions, services.cluster.image, topic, part.partition
            )
            fencing.check_leader(partition, part.current_leader_epoch)
            epoch, end_offset = partition.log.offset_for_leader_epoch(part.leader_epoch)
        except PARTITION_ERRORS as error:
            return EpochEndOffset(partition=part.partition, error_code=code_of(error))
        return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[answer(topic.topic, part) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )
