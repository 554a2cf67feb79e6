"""DescribeAcls (key 29, v1-v3): the ACLs that match a filter, by resource.

Refused: all without an authorizer; filters with unknown elements.
"""

from penstock.broker.context import Context
from penstock.broker.translate.acl_fields import NO_RULES, wanted
from penstock.errors import ErrorCode, KafkaError
from penstock.security.acl import AccessRule, ResourcePattern
from penstock.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def describe_acls(request: DescribeAclsRequest, ctx: Context) -> DescribeAclsResponse:
    authorizer = ctx.services.authorizer
    if authorizer is None:
        return refused(ErrorCode.SECURITY_DISABLED, NO_RULES)
    try:
        found = authorizer.acls.matching(wanted(request))
    except KafkaError as error:
        return refused(error.code, str(error))
    by_resource: dict[ResourcePattern, list[AccessRule]] = {}
    for each in found:
        by_resource.setdefault(each.resource, []).append(each.rule)
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                resource.type,
                resource.name,
                resource.pattern,
                [
                    AclDescription(each.principal, each.host, each.operation, each.permission)
                    for each in rules
                ],
            )
            for resource, rules in by_resource.items()
        ],
    )


def refused(code: ErrorCode, text: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=text, resources=[])
