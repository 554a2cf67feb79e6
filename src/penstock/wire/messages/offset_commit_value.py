"""OffsetCommitValue; written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int32, int64


class OffsetCommitValue(Message):
    offset: int64 = 0
    leader_epoch: Annotated[int32, V("3+")] = -1
    metadata: str = ""
    commit_timestamp: int64 = 0
    expire_timestamp: Annotated[int64, V("1")] = -1
    topic_id: Annotated[Uuid, V("4+", tag=0)] = NO_UUID
