"""GroupMetadataValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int32, int64


class MemberMetadata(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("3+")] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[int32, V("1+")] = -1
    session_timeout: int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Message):
    protocol_type: str = ""
    generation: int32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[int64, V("2+")] = -1
    members: list[MemberMetadata] = []
