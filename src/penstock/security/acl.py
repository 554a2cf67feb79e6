"""Access control lists with Kafka's semantics. Pure.

Deny wins over allow. An allow of read, write, delete or alter implies describe; one of
alter-configs implies describe-configs. A deny implies nothing. If no ACL matches a resource, only
super users have access, unless `allow.everyone.if.no.acl.found` is set.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

from penstock.config.address import canonical


class ResourceType(IntEnum):
    """Type of resource, numbered as on the wire. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a resource's name is matched. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclOperation(IntEnum):
    """Numbered as on the wire. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"
WILDCARD_PRINCIPAL: Final = "User:*"

_Op = AclOperation
OPERATIONS: Final[Mapping[ResourceType, frozenset[AclOperation]]] = {
    ResourceType.TOPIC: frozenset(
        {
            _Op.READ,
            _Op.WRITE,
            _Op.CREATE,
            _Op.DESCRIBE,
            _Op.DELETE,
            _Op.ALTER,
            _Op.DESCRIBE_CONFIGS,
            _Op.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {_Op.READ, _Op.DESCRIBE, _Op.DELETE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS}
    ),
    ResourceType.CLUSTER: frozenset(
        {
            _Op.CREATE,
            _Op.CLUSTER_ACTION,
            _Op.DESCRIBE_CONFIGS,
            _Op.ALTER_CONFIGS,
            _Op.IDEMPOTENT_WRITE,
            _Op.ALTER,
            _Op.DESCRIBE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({_Op.DESCRIBE, _Op.WRITE, _Op.TWO_PHASE_COMMIT}),
    ResourceType.DELEGATION_TOKEN: frozenset({_Op.DESCRIBE}),
    ResourceType.USER: frozenset({_Op.CREATE_TOKENS, _Op.DESCRIBE_TOKENS}),
}
"""The operations on each type of resource; an ACL may also name ALL."""

ALLOWED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    **{each: frozenset({each, _Op.ALL}) for each in AclOperation},
    _Op.DESCRIBE: frozenset({_Op.DESCRIBE, _Op.READ, _Op.WRITE, _Op.DELETE, _Op.ALTER, _Op.ALL}),
    _Op.DESCRIBE_CONFIGS: frozenset({_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS, _Op.ALL}),
}


class ResourcePattern(msgspec.Struct, frozen=True, order=True):
    """The resources of an ACL: one name, every name (`*`), or all names with a prefix."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def matches(self, name: str) -> bool:
        """Whether it covers the resource of that name."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, WILDCARD}

    def __str__(self) -> str:
        return f"{self.type.name.title().replace('_', '')}:{self.pattern.name}:{self.name}"


class AccessRule(msgspec.Struct, frozen=True, order=True):
    """Allows or denies a principal an operation from a host. `User:*` means every user."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def concerns(self, principal: str, host: str) -> bool:
        """`host` is the client's address in canonical form."""
        if self.principal not in {principal, WILDCARD_PRINCIPAL}:
            return False
        return self.host in {host, WILDCARD} or canonical(self.host) == host


class Acl(msgspec.Struct, frozen=True, order=True):
    """An access rule for a resource pattern."""

    resource: ResourcePattern
    rule: AccessRule


class AclFilter(msgspec.Struct, frozen=True):
    """Selects ACLs for a request; None matches everything."""

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        rule = acl.rule
        return (
            self.type in {ResourceType.ANY, acl.resource.type}
            and self._matches_name(acl.resource)
            and self.principal in {None, rule.principal}
            and self.host in {None, rule.host}
            and self.operation in {AclOperation.ANY, rule.operation}
            and self.permission in {Permission.ANY, rule.permission}
        )

    def _matches_name(self, resource: ResourcePattern) -> bool:
        if self.pattern not in {PatternType.ANY, PatternType.MATCH, resource.pattern}:
            return False
        if self.name is None:
            return True
        if self.pattern is PatternType.MATCH:
            return resource.matches(self.name)
        return self.name == resource.name


class Verdict(msgspec.Struct, frozen=True):
    """Whether it is allowed, and the ACL that decided it; None: no ACL did."""

    allowed: bool
    acl: Acl | None = None
