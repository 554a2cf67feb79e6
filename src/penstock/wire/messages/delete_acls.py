"""DeleteAcls (key 31); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class DeleteAclsFilter(Message):
    resource_type_filter: int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int8 = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""
    pattern_type: int8 = 3
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DeleteAclsFilterResult(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    throttle_time_ms: int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
