"""ShareGroupMetadataValue; written by codegen."""

from penstock.wire.schema import Message, int32, int64


class ShareGroupMetadataValue(Message):
    epoch: int32 = 0
    metadata_hash: int64 = 0
