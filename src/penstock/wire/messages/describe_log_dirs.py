"""DescribeLogDirs (key 35); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class DescribableLogDirTopic(Message):
    topic: str = ""
    partitions: list[int32] = []


class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(Message):
    partition_index: int32 = 0
    partition_size: int64 = 0
    offset_lag: int64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Message):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Message):
    error_code: int16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[int64, V("4+")] = -1
    usable_bytes: Annotated[int64, V("4+")] = -1
    is_cordoned: Annotated[bool, V("5+")] = False


class DescribeLogDirsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("3+")] = 0
    results: list[DescribeLogDirsResult] = []
