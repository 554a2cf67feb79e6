"""DeleteShareGroupState (key 86); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32


class PartitionData(Message):
    partition: int32 = 0


class DeleteStateData(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionData] = []


class DeleteShareGroupStateRequest(Message):
    group_id: str = ""
    topics: list[DeleteStateData] = []


class PartitionResult(Message):
    partition: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None


class DeleteStateResult(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[PartitionResult] = []


class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = []
