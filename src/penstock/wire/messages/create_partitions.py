"""CreatePartitions (key 37); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class CreatePartitionsAssignment(Message):
    broker_ids: list[int32] = []


class CreatePartitionsTopic(Message):
    name: str = ""
    count: int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    name: str = ""
    error_code: int16 = 0
    error_message: str | None = None


class CreatePartitionsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[CreatePartitionsTopicResult] = []
