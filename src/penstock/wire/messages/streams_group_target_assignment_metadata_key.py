"""StreamsGroupTargetAssignmentMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""
