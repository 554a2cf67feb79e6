"""DescribeConfigs (key 32); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class DescribeConfigsResource(Message):
    resource_type: int8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []


class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, V("3+")] = False


class DescribeConfigsSynonym(Message):
    name: str = ""
    value: str | None = ""
    source: int8 = 0


class DescribeConfigsResourceResult(Message):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[int8, V("3+")] = 0
    documentation: Annotated[str | None, V("3+", nullable="0+")] = ""


class DescribeConfigsResult(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[DescribeConfigsResult] = []
