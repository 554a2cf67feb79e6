"""SyncGroup (key 14); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class SyncGroupRequestAssignment(Message):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Message):
    group_id: str = ""
    generation_id: int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("3+")] = None
    protocol_type: Annotated[str | None, V("5+")] = None
    protocol_name: Annotated[str | None, V("5+")] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    protocol_type: Annotated[str | None, V("5+")] = None
    protocol_name: Annotated[str | None, V("5+")] = None
    assignment: bytes = b""
