"""ShareGroupTargetAssignmentMemberKey; written by codegen."""

from penstock.wire.schema import Message


class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""
