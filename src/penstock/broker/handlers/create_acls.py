"""CreateAcls (key 30, v1-v3): rules of who may do what; each succeeds or fails for itself.

Refused: all of them without an authorizer; operations that the resource does not have; principals
without a type; empty names, names with a slash; what only filters may say.
"""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.context import Context
from penstock.broker.translate.acl_fields import NO_AUTHORIZER, creation
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def create_acls(
    request: CreateAclsRequest, ctx: Context
) -> CreateAclsResponse | Coroutine[Any, Any, CreateAclsResponse]:
    authorizer = ctx.services.authorizer
    if authorizer is None:
        refused = AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return CreateAclsResponse(results=[refused] * len(request.creations))
    return created(request.creations, authorizer)


async def created(asked: list[AclCreation], authorizer: Authorizer) -> CreateAclsResponse:
    results = []
    for each in asked:
        code, text = ErrorCode.NONE, None
        try:
            await authorizer.create([creation(each)])
        except KafkaError as error:
            code, text = error.code, str(error)
        results.append(AclCreationResult(code, text))
    return CreateAclsResponse(results=results)
