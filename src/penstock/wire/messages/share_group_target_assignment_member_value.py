"""ShareGroupTargetAssignmentMemberValue; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int32


class TopicPartition(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []


class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = []
