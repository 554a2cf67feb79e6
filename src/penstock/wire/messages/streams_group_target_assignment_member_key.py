"""StreamsGroupTargetAssignmentMemberKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""
