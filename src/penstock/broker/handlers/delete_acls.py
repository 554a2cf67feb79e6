"""DeleteAcls (key 31, v1-v3): there is no authorizer, so each filter is refused."""

from penstock.broker.context import Context
from penstock.broker.translate.authorization import NO_AUTHORIZER
from penstock.errors import ErrorCode
from penstock.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def delete_acls(request: DeleteAclsRequest, _ctx: Context) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[]
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
