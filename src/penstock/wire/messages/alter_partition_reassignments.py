"""AlterPartitionReassignments (key 45); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class ReassignablePartition(Message):
    partition_index: int32 = 0
    replicas: list[int32] | None = None


class ReassignableTopic(Message):
    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int32 = 60000
    allow_replication_factor_change: Annotated[bool, V("1+")] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""


class ReassignableTopicResponse(Message):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = 0
    allow_replication_factor_change: Annotated[bool, V("1+")] = True
    error_code: int16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
