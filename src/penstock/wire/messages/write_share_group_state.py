"""WriteShareGroupState (key 85); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32, int64


class StateBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class PartitionData(Message):
    partition: int32 = 0
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("1+")] = -1
    state_batches: list[StateBatch] = []


class WriteStateData(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class WriteShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[WriteStateData] = []


class PartitionResult(Message):
    partition: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None


class WriteStateResult(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionResult] = []


class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = []
