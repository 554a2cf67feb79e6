"""Converts ACLs between the wire's numbers and their meanings."""

from penstock.client.acls import AclBinding, AclBindingFilter
from penstock.config.address import is_address
from penstock.errors import ConfigError
from penstock.security.acl import (
    AccessRule,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.acl_text import check_known, operation_of, principal_of, resource_of


def acl_of(found: AclBinding) -> Acl:
    resource = ResourcePattern(
        ResourceType(found.resource_type), found.name, PatternType(found.pattern)
    )
    operation, permission = AclOperation(found.operation), Permission(found.permission)
    return Acl(resource, AccessRule(found.principal, found.host, operation, permission))


def filter_of(principal: str | None, resource: str | None) -> AclBindingFilter:
    who = None if principal is None else str(principal_of(principal))
    if resource is None:
        return AclBindingFilter(principal=who)
    of = resource_of(resource)
    return AclBindingFilter(principal=who, resource_type=of.type, name=of.name, pattern=of.pattern)


def new_rule(principal: str, operation: str, resource: str, *, deny: bool, host: str) -> AclBinding:
    of, what = resource_of(resource), operation_of(operation)
    check_known(of.type, what)
    if host != "*" and not is_address(host):
        raise ConfigError(
            f"--host is {host!r}, must be an IP address or *: clients are known by their address, "
            "so that a rule for a name or a network would never hold"
        )
    permission = Permission.DENY if deny else Permission.ALLOW
    return AclBinding(
        of.type, of.name, of.pattern, str(principal_of(principal)), host, what, permission
    )
