"""Heartbeat (key 12); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class HeartbeatRequest(Message):
    group_id: str = ""
    generation_id: int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("3+")] = None


class HeartbeatResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
