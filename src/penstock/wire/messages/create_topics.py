"""CreateTopics (key 19); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32


class CreatableReplicaAssignment(Message):
    partition_index: int32 = 0
    broker_ids: list[int32] = []


class CreatableTopicConfig(Message):
    name: str = ""
    value: str | None = ""


class CreatableTopic(Message):
    name: str = ""
    num_partitions: int32 = 0
    replication_factor: int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = []
    timeout_ms: int32 = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Message):
    name: Annotated[str, V("5+")] = ""
    value: Annotated[str | None, V("5+")] = ""
    read_only: Annotated[bool, V("5+")] = False
    config_source: Annotated[int8, V("5+")] = -1
    is_sensitive: Annotated[bool, V("5+")] = False


class CreatableTopicResult(Message):
    name: str = ""
    topic_id: Annotated[Uuid, V("7+")] = NO_UUID
    error_code: int16 = 0
    error_message: str | None = ""
    topic_config_error_code: Annotated[int16, V("5+", tag=0)] = 0
    num_partitions: Annotated[int32, V("5+")] = -1
    replication_factor: Annotated[int16, V("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, V("5+")] = []


class CreateTopicsResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[CreatableTopicResult] = []
