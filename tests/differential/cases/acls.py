"""ACL requests to brokers without an authorizer."""

from typing import Any

from differential.case import Case, case
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest
from penstock.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from penstock.wire.messages.describe_acls import DescribeAclsRequest

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3

RULE = AclCreation(
    resource_type=TOPIC,
    resource_name="t",
    resource_pattern_type=LITERAL,
    principal="User:alice",
    host="*",
    operation=READ,
    permission_type=ALLOW,
)
ANYTHING: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
OF_TOPICS = DeleteAclsFilter(**{**ANYTHING, "resource_type_filter": TOPIC})

CASES: list[Case] = [
    case("all rules", DescribeAclsRequest(**ANYTHING)),
    case("two rules are made", CreateAclsRequest(creations=[RULE, RULE])),
    case("no rule is made", CreateAclsRequest(creations=[])),
    case("two filters delete", DeleteAclsRequest(filters=[OF_TOPICS, OF_TOPICS])),
    case("no filter deletes", DeleteAclsRequest(filters=[])),
]
