"""OffsetDelete (key 47); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class OffsetDeleteRequestPartition(Message):
    partition_index: int32 = 0


class OffsetDeleteRequestTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    partition_index: int32 = 0
    error_code: int16 = 0


class OffsetDeleteResponseTopic(Message):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    error_code: int16 = 0
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
