"""ConsumerGroupTargetAssignmentMemberKey; written by codegen."""

from penstock.wire.schema import Message


class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = ""
    member_id: str = ""
