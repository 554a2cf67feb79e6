"""OffsetForLeaderEpoch (key 23); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class OffsetForLeaderPartition(Message):
    partition: int32 = 0
    current_leader_epoch: int32 = -1
    leader_epoch: int32 = 0


class OffsetForLeaderTopic(Message):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Message):
    replica_id: Annotated[int32, V("3+")] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    error_code: int16 = 0
    partition: int32 = 0
    leader_epoch: int32 = -1
    end_offset: int64 = -1


class OffsetForLeaderTopicResult(Message):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
