"""ConsumerGroupDescribe (key 69); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32


class ConsumerGroupDescribeRequest(Message):
    group_ids: list[str] = []
    include_authorized_operations: bool = False


class TopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    topic_name: str = ""
    partitions: list[int32] = []


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: Annotated[int8, V("1+")] = -1


class DescribedGroup(Message):
    error_code: int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: int32 = -2147483648


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup] = []
