"""CreateAcls (key 30, v1-v3): there is no authorizer, so each rule is refused."""

from penstock.broker.context import Context
from penstock.broker.translate.authorization import NO_AUTHORIZER
from penstock.errors import ErrorCode
from penstock.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def create_acls(request: CreateAclsRequest, _ctx: Context) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * len(request.creations))
