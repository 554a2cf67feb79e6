"""ReadShareGroupState (key 84); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int8, int16, int32, int64


class PartitionData(Message):
    partition: int32 = 0
    leader_epoch: int32 = 0


class ReadStateData(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class ReadShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[ReadStateData] = []


class StateBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class PartitionResult(Message):
    partition: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    state_epoch: int32 = 0
    start_offset: int64 = 0
    state_batches: list[StateBatch] = []


class ReadStateResult(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionResult] = []


class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = []
