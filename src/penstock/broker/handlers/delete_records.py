"""DeleteRecords (key 21, v0-v2): move the start of logs forward, up to the high watermark (-1).

Refused: offsets past it; topics that are only compacted, whose records go by key.
"""

from penstock.broker.context import Context
from penstock.broker.translate.refusal import Refusal, code_of
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


class CompactedOnly(KafkaError):
    """Records of this topic are not deleted by offset."""

    code = ErrorCode.POLICY_VIOLATION


class NegativeOffset(KafkaError):
    """Offsets begin at 0; -1 stands for the high watermark."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


def delete_records(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse:
    def answer(topic: str, part: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        index = part.partition_index
        try:
            partition = ctx.services.partitions.get(topic, index)
            partition.check_leader()
            log = partition.log
            if "delete" not in log.config.cleanup_policy:
                raise CompactedOnly(f"{topic} has cleanup.policy=compact")
            if part.offset < -1:
                raise NegativeOffset(f"offset {part.offset}")
            log.maybe_increment_log_start(log.high_watermark if part.offset == -1 else part.offset)
        except Refusal as error:
            return DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=-1, error_code=code_of(error)
            )
        ctx.services.waiters.changed(partition.topic_partition)
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=log.log_start_offset
        )

    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    answer(topic.name, part)
                    for part in {each.partition_index: each for each in topic.partitions}.values()
                ],
            )
            for topic in request.topics
        ]
    )
