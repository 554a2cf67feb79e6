"""OffsetCommitKey; written by codegen."""

from penstock.wire.schema import Message, int32


class OffsetCommitKey(Message):
    group: str = ""
    topic: str = ""
    partition: int32 = 0
