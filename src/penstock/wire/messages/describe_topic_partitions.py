"""DescribeTopicPartitions (key 75); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32


class TopicRequest(Message):
    name: str = ""


class Cursor(Message):
    topic_name: str = ""
    partition_index: int32 = 0


class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = []
    response_partition_limit: int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int16 = 0
    partition_index: int32 = 0
    leader_id: int32 = 0
    leader_epoch: int32 = -1
    replica_nodes: list[int32] = []
    isr_nodes: list[int32] = []
    eligible_leader_replicas: list[int32] | None = None
    last_known_elr: list[int32] | None = None
    offline_replicas: list[int32] = []


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int16 = 0
    name: str | None = ""
    topic_id: Uuid = NO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int32 = -2147483648


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
