"""ShareGroupTargetAssignmentMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = ""
