"""DescribeGroups (key 15); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class DescribeGroupsRequest(Message):
    groups: list[str] = []
    include_authorized_operations: Annotated[bool, V("3+")] = False


class DescribedGroupMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, V("4+")] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    error_code: int16 = 0
    error_message: Annotated[str | None, V("6+")] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[int32, V("3+")] = -2147483648


class DescribeGroupsResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    groups: list[DescribedGroup] = []
