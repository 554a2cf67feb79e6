"""ShareGroupMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupMetadataKey(Message):
    group_id: str = ""
