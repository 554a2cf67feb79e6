"""ShareGroupStatePartitionMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = ""
