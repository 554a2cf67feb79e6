"""ShareGroupCurrentMemberAssignmentKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""
