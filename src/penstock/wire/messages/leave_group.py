"""LeaveGroup (key 13); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class MemberIdentity(Message):
    member_id: Annotated[str, V("3+")] = ""
    group_instance_id: Annotated[str | None, V("3+")] = None
    reason: Annotated[str | None, V("5+")] = None


class LeaveGroupRequest(Message):
    group_id: str = ""
    member_id: Annotated[str, V("0-2")] = ""
    members: Annotated[list[MemberIdentity], V("3+")] = []


class MemberResponse(Message):
    member_id: Annotated[str, V("3+")] = ""
    group_instance_id: Annotated[str | None, V("3+")] = ""
    error_code: Annotated[int16, V("3+")] = 0


class LeaveGroupResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    members: Annotated[list[MemberResponse], V("3+")] = []
