"""ConsumerGroupMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupMetadataKey(Message):
    group_id: str = ""
