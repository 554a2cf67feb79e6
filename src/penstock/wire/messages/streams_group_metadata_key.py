"""StreamsGroupMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupMetadataKey(Message):
    group_id: str = ""
