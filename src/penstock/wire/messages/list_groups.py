"""ListGroups (key 16); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class ListGroupsRequest(Message):
    states_filter: Annotated[list[str], V("4+")] = []
    types_filter: Annotated[list[str], V("5+")] = []


class ListedGroup(Message):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, V("4+")] = ""
    group_type: Annotated[str, V("5+")] = ""


class ListGroupsResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    groups: list[ListedGroup] = []
