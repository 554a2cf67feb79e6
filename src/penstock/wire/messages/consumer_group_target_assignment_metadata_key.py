"""ConsumerGroupTargetAssignmentMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""
