"""AlterReplicaLogDirs (key 34, v1-v2): move replicas between this broker's log directories.

Answered when a move has begun; DescribeLogDirs shows its progress. Refused: unknown directories,
partitions that are not on this broker.
"""

from pathlib import Path

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.types import TopicPartition
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, ctx: Context
) -> AlterReplicaLogDirsResponse:
    # For a partition that is named twice, the last directory counts.
    wanted = {
        TopicPartition(topic.name, index): Path(log_dir.path)
        for log_dir in request.dirs
        for topic in log_dir.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic_partition, path in wanted.items():
        code = 0
        try:
            ctx.services.replicas.log_dir_moves.start(topic_partition, path)
        except PARTITION_ERRORS as error:
            code = code_of(error)
        result = AlterReplicaLogDirPartitionResult(
            partition_index=topic_partition.partition, error_code=code
        )
        results.setdefault(topic_partition.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )
