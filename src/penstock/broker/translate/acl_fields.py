"""Reads ACLs and filters from requests."""

from enum import IntEnum
from typing import Final, TypeVar

from penstock.errors import InvalidRequest
from penstock.security.acl import (
    CLUSTER_NAME,
    OPERATIONS,
    AccessRule,
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.principal import parse_principal
from penstock.wire.messages.create_acls import AclCreation
from penstock.wire.messages.delete_acls import DeleteAclsFilter
from penstock.wire.messages.describe_acls import DescribeAclsRequest

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_RULES: Final = "No Authorizer is configured on the broker"

E = TypeVar("E", bound=IntEnum)


def element(kind: type[E], number: int, what: str) -> E:
    try:
        found = kind(number)
    except ValueError:
        found = kind(0)
    if found == 0:
        raise InvalidRequest(f"The AclBinding contains unknown elements: {what} {number}")
    return found


def creation(asked: AclCreation) -> Acl:
    """The ACL to create."""
    kind = element(ResourceType, asked.resource_type, "resource type")
    pattern = element(PatternType, asked.resource_pattern_type, "pattern type")
    operation = element(AclOperation, asked.operation, "operation")
    permission = element(Permission, asked.permission_type, "permission")
    if kind not in OPERATIONS or pattern not in {PatternType.LITERAL, PatternType.PREFIXED}:
        raise InvalidRequest("An ACL names one resource type, and a literal or prefixed name")
    if permission is Permission.ANY:
        raise InvalidRequest("Invalid permission type ANY")
    if operation is not AclOperation.ALL and operation not in OPERATIONS[kind]:
        raise InvalidRequest(f"Operation {operation.name} is not for {kind.name} resources")
    name = asked.resource_name
    if not name:
        raise InvalidRequest("Resource name should not be empty")
    if "/" in name or name in {".", ".."}:  # not possible as names of nodes in the store
        raise InvalidRequest("A resource's name cannot hold a slash, nor be . or ..")
    if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if parse_principal(asked.principal) is None:
        raise InvalidRequest(f"Could not parse principal from `{asked.principal}`")
    if not asked.host:
        raise InvalidRequest("The host is empty; * stands for every host")
    rule = AccessRule(asked.principal, asked.host, operation, permission)
    return Acl(ResourcePattern(kind, name, pattern), rule)


def wanted(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        element(ResourceType, asked.resource_type_filter, "resource type"),
        asked.resource_name_filter,
        element(PatternType, asked.pattern_type_filter, "pattern type"),
        asked.principal_filter,
        asked.host_filter,
        element(AclOperation, asked.operation, "operation"),
        element(Permission, asked.permission_type, "permission"),
    )
