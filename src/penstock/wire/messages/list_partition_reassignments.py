"""ListPartitionReassignments (key 46); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class ListPartitionReassignmentsTopics(Message):
    name: str = ""
    partition_indexes: list[int32] = []


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(Message):
    partition_index: int32 = 0
    replicas: list[int32] = []
    adding_replicas: list[int32] = []
    removing_replicas: list[int32] = []


class OngoingTopicReassignment(Message):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
