"""CreateAcls (key 30); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class AclCreation(Message):
    resource_type: int8 = 0
    resource_name: str = ""
    resource_pattern_type: int8 = 3
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


class CreateAclsRequest(Message):
    creations: list[AclCreation] = []


class AclCreationResult(Message):
    error_code: int16 = 0
    error_message: str | None = ""


class CreateAclsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[AclCreationResult] = []
