"""DeleteShareGroupOffsets (key 92); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: str = ""
    topic_id: Uuid = NO_UUID
    error_code: int16 = 0
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
