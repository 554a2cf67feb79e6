"""AlterShareGroupOffsets (key 91); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32, int64


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int32 = 0
    start_offset: int64 = 0


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []


class AlterShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: Uuid = NO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []


class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
