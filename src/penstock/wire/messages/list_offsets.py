"""ListOffsets (key 2); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64


class ListOffsetsPartition(Message):
    partition_index: int32 = 0
    current_leader_epoch: Annotated[int32, V("4+")] = -1
    timestamp: int64 = 0


class ListOffsetsTopic(Message):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Message):
    replica_id: int32 = 0
    isolation_level: Annotated[int8, V("2+")] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[int32, V("10+")] = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    timestamp: int64 = -1
    offset: int64 = -1
    leader_epoch: Annotated[int32, V("4+")] = -1


class ListOffsetsTopicResponse(Message):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Message):
    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[ListOffsetsTopicResponse] = []
