"""GroupMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class GroupMetadataKey(Message):
    group: str = ""
