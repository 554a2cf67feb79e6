"""JoinGroup (key 11); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class JoinGroupRequestProtocol(Message):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Message):
    group_id: str = ""
    session_timeout_ms: int32 = 0
    rebalance_timeout_ms: Annotated[int32, V("1+")] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("5+")] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, V("8+")] = None


class JoinGroupResponseMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("5+")] = None
    metadata: bytes = b""


class JoinGroupResponse(Message):
    throttle_time_ms: Annotated[int32, V("2+")] = 0
    error_code: int16 = 0
    generation_id: int32 = -1
    protocol_type: Annotated[str | None, V("7+")] = None
    protocol_name: Annotated[str | None, V("0+", nullable="7+")] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, V("9+")] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
