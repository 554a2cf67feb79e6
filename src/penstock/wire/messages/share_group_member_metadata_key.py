"""ShareGroupMemberMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""
