"""DeleteTopics (key 20); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32


class DeleteTopicState(Message):
    name: Annotated[str | None, V("6+")] = None
    topic_id: Annotated[Uuid, V("6+")] = NO_UUID


class DeleteTopicsRequest(Message):
    topics: Annotated[list[DeleteTopicState], V("6+")] = []
    topic_names: Annotated[list[str], V("0-5")] = []
    timeout_ms: int32 = 0


class DeletableTopicResult(Message):
    name: Annotated[str | None, V("0+", nullable="6+")] = ""
    topic_id: Annotated[Uuid, V("6+")] = NO_UUID
    error_code: int16 = 0
    error_message: Annotated[str | None, V("5+")] = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: int32 = 0
    responses: list[DeletableTopicResult] = []
