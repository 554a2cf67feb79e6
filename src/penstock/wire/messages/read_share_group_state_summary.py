"""ReadShareGroupStateSummary (key 87); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32, int64


class PartitionData(Message):
    partition: int32 = 0
    leader_epoch: int32 = 0


class ReadStateSummaryData(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = ""
    topics: list[ReadStateSummaryData] = []


class PartitionResult(Message):
    partition: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("1+")] = -1


class ReadStateSummaryResult(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionResult] = []


class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = []
