"""ShareGroupHeartbeat (key 76); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int16, int32


class ShareGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


class TopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = None
