"""DescribeAcls (key 29, v1-v3): there is no authorizer, and so no rule to tell."""

from penstock.broker.context import Context
from penstock.broker.translate.authorization import NO_RULES
from penstock.errors import ErrorCode
from penstock.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(_request: DescribeAclsRequest, _ctx: Context) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message=NO_RULES,
        resources=[],
    )
