"""ConsumerGroupCurrentMemberAssignmentKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = ""
    member_id: str = ""
