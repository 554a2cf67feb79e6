"""ConsumerGroupCurrentMemberAssignmentValue; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int32


class TopicPartitions(Message):
    topic_id: Uuid = NO_UUID
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", tag=0)] = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []
