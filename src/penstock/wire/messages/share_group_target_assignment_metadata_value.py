"""ShareGroupTargetAssignmentMetadataValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int32, int64


class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int32 = 0
    assignment_timestamp: Annotated[int64, V("0+", tag=0)] = 0
