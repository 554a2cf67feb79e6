"""AlterConfigs (key 33); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class AlterableConfig(Message):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Message):
    resource_type: int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Message):
    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
