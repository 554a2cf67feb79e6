"""ConsumerGroupHeartbeat (key 68); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32


class TopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []


class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: Annotated[str | None, V("1+")] = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = None
