"""DescribeAcls (key 29); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class DescribeAclsRequest(Message):
    resource_type_filter: int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int8 = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int8 = 0
    permission_type: int8 = 0


class AclDescription(Message):
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DescribeAclsResource(Message):
    resource_type: int8 = 0
    resource_name: str = ""
    pattern_type: int8 = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
