"""ConsumerGroupMemberMetadataKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = ""
    member_id: str = ""
