"""ShareSnapshotKey; written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int32


class ShareSnapshotKey(Message):
    group_id: str = ""
    topic_id: Uuid = NO_UUID
    partition: int32 = 0
