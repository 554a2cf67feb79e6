"""StreamsGroupMemberMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""
