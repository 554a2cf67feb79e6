"""DescribeShareGroupOffsets (key 90); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: list[int32] = []


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []


class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: int32 = 0
    start_offset: int64 = 0
    leader_epoch: int32 = 0
    lag: Annotated[int64, V("1+")] = -1
    error_code: int16 = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: Uuid = NO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []


class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: int16 = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
