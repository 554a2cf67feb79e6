"""InitializeShareGroupState (key 83); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32, int64


class PartitionData(Message):
    partition: int32 = 0
    state_epoch: int32 = 0
    start_offset: int64 = 0


class InitializeStateData(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class InitializeShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[InitializeStateData] = []


class PartitionResult(Message):
    partition: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None


class InitializeStateResult(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionResult] = []


class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = []
