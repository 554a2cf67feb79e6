"""AlterReplicaLogDirs (key 34, v1-v2): move replicas between this broker's log directories.

Answered when a move has begun; DescribeLogDirs shows its progress. Refused: unknown directories,
partitions that are not on this broker.
"""

from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, Final

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN, in_turns
from penstock.types import TopicPartition
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

LOGS_A_TURN: Final = 5
"""Starting the copy of a log takes a millisecond."""


def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, ctx: Context
) -> AlterReplicaLogDirsResponse | Coroutine[Any, Any, AlterReplicaLogDirsResponse]:
    return in_turns(altered(request, ctx))


def altered(
    request: AlterReplicaLogDirsRequest, ctx: Context
) -> Generator[None, None, AlterReplicaLogDirsResponse]:
    # For a partition that is named twice, the last directory counts.
    wanted: dict[TopicPartition, Path] = {}
    count = 0
    for log_dir in request.dirs:
        path = Path(log_dir.path)
        count += 1
        for topic in log_dir.topics:
            count += 1
            for index in topic.partitions:
                wanted[TopicPartition(topic.name, index)] = path
                count += 1
                if count % PARTITIONS_A_TURN == 0:
                    yield
            if count % PARTITIONS_A_TURN == 0:
                yield
        if count % PARTITIONS_A_TURN == 0:
            yield
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    started = 0
    for count, (topic_partition, path) in enumerate(wanted.items(), 1):
        code = 0
        try:
            ctx.services.replicas.log_dir_moves.start(topic_partition, path)
        except PARTITION_ERRORS as error:
            code = code_of(error)
        result = AlterReplicaLogDirPartitionResult(
            partition_index=topic_partition.partition, error_code=code
        )
        results.setdefault(topic_partition.topic, []).append(result)
        started += not code
        if count % PARTITIONS_A_TURN == 0 or (not code and started % LOGS_A_TURN == 0):
            yield
    topics: list[AlterReplicaLogDirTopicResult] = []
    for name, partitions in results.items():
        topics.append(AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions))
        if len(topics) % KEYS_A_TURN == 0:
            yield
    return AlterReplicaLogDirsResponse(results=topics)
