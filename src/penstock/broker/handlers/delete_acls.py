"""DeleteAcls (key 31, v1-v3): delete the ACLs that match filters, and list them.

Refused: all filters without an authorizer; filters with unknown elements.
"""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.broker.translate.acl_fields import NO_AUTHORIZER, wanted
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import with_turns
from penstock.security.acl import Acl
from penstock.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def delete_acls(
    request: DeleteAclsRequest, ctx: Context
) -> DeleteAclsResponse | Coroutine[Any, Any, DeleteAclsResponse]:
    authorizer = ctx.services.authorizer
    if authorizer is None:
        refused = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER, [])
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
    return deleted(request.filters, authorizer)


async def deleted(asked: list[DeleteAclsFilter], authorizer: Authorizer) -> DeleteAclsResponse:
    results = []
    # Refused items never await, so yield to the loop here.
    async for each in with_turns(asked, PARTITIONS_A_TURN):
        try:
            found = await authorizer.delete(wanted(each))
        except KafkaError as error:
            results.append(DeleteAclsFilterResult(error.code, str(error), []))
        else:
            results.append(DeleteAclsFilterResult(0, None, [matching(acl) for acl in found]))
    return DeleteAclsResponse(filter_results=results)


def matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource.type,
        resource_name=acl.resource.name,
        pattern_type=acl.resource.pattern,
        principal=acl.rule.principal,
        host=acl.rule.host,
        operation=acl.rule.operation,
        permission_type=acl.rule.permission,
    )
