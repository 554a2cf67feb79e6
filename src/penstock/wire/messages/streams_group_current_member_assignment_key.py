"""StreamsGroupCurrentMemberAssignmentKey; written by codegen."""

from penstock.wire.schema import Message


class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""
