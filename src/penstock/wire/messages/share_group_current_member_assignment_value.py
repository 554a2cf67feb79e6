"""ShareGroupCurrentMemberAssignmentValue; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int8, int32


class TopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []


class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[TopicPartitions] = []
