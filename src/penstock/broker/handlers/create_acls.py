"""CreateAcls (key 30, v1-v3): create ACLs; each succeeds or fails on its own.

Refused: all of them without an authorizer; operations that the resource does not have; principals
without a type; empty names, names with a slash; values that only filters may have.
"""

import logging
from collections.abc import Coroutine
from typing import Any

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.broker.translate.acl_fields import NO_AUTHORIZER, creation
from penstock.config.address import is_address
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import with_turns
from penstock.security.acl import WILDCARD
from penstock.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

logger = logging.getLogger(__name__)


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
    # Refused items never await, so yield to the loop here.
    async for each in with_turns(asked, PARTITIONS_A_TURN):
        code, text = ErrorCode.NONE, None
        try:
            new = creation(each)
            if new.rule.host != WILDCARD and not is_address(new.rule.host):
                # Kafka, too, accepts it and never applies it.
                logger.warning(
                    "host %.100r of an ACL is not an address: the ACL never applies", new.rule.host
                )
            await authorizer.create([new])
        except KafkaError as error:
            code, text = error.code, str(error)
        results.append(AclCreationResult(code, text))
    return CreateAclsResponse(results=results)
