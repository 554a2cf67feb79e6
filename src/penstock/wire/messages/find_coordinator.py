"""FindCoordinator (key 10); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class FindCoordinatorRequest(Message):
    key: Annotated[str, V("0-3")] = ""
    key_type: Annotated[int8, V("1+")] = 0
    coordinator_keys: Annotated[list[str], V("4+")] = []


class Coordinator(Message):
    key: Annotated[str, V("4+")] = ""
    node_id: Annotated[int32, V("4+")] = 0
    host: Annotated[str, V("4+")] = ""
    port: Annotated[int32, V("4+")] = 0
    error_code: Annotated[int16, V("4+")] = 0
    error_message: Annotated[str | None, V("4+")] = ""


class FindCoordinatorResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V("0-3")] = 0
    error_message: Annotated[str | None, V("1-3")] = ""
    node_id: Annotated[int32, V("0-3")] = 0
    host: Annotated[str, V("0-3")] = ""
    port: Annotated[int32, V("0-3")] = 0
    coordinators: Annotated[list[Coordinator], V("4+")] = []
