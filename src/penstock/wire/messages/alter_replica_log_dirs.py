"""AlterReplicaLogDirs (key 34); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class AlterReplicaLogDirTopic(Message):
    name: str = ""
    partitions: list[int32] = []


class AlterReplicaLogDir(Message):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int32 = 0
    error_code: int16 = 0


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
