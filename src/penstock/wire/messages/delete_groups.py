"""DeleteGroups (key 42); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32


class DeleteGroupsRequest(Message):
    groups_names: list[str] = []


class DeletableGroupResult(Message):
    group_id: str = ""
    error_code: int16 = 0
    error_message: Annotated[str | None, V("3+")] = None


class DeleteGroupsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult] = []
