"""ListConfigResources (key 74); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class ListConfigResourcesRequest(Message):
    resource_types: Annotated[list[int8], V("1+")] = []


class ConfigResource(Message):
    resource_name: str = ""
    resource_type: Annotated[int8, V("1+")] = 16


class ListConfigResourcesResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    config_resources: list[ConfigResource] = []
