"""Access control lists with Kafka's meaning. Pure.

Deny wins over allow. An allow of read, write, delete or alter implies describe; one of
alter-configs implies describe-configs. A deny implies nothing. Where no ACL speaks of a resource,
only super users may do anything, unless `allow.everyone.if.no.acl.found`.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final

import msgspec

from penstock.config.address import canonical
from penstock.security.principal import Principal


class ResourceType(IntEnum):
    """What an ACL is about, numbered as on the wire. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a resource's name is meant. ANY and MATCH are for filters only."""

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
"""The operations that each resource knows; an ACL may also name ALL."""

_ALLOWED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    **{each: frozenset({each, _Op.ALL}) for each in AclOperation},
    _Op.DESCRIBE: frozenset({_Op.DESCRIBE, _Op.READ, _Op.WRITE, _Op.DELETE, _Op.ALTER, _Op.ALL}),
    _Op.DESCRIBE_CONFIGS: frozenset({_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS, _Op.ALL}),
}


class ResourcePattern(msgspec.Struct, frozen=True, order=True):
    """The resources that an ACL is about: one name, every name (`*`), or all with a prefix."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def matches(self, name: str) -> bool:
        """Whether it is about the resource of that name."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, WILDCARD}

    def __str__(self) -> str:
        return f"{self.type.name.title().replace('_', '')}:{self.pattern.name}:{self.name}"


class AccessRule(msgspec.Struct, frozen=True, order=True):
    """Who, from where, may or may not do what. The principal is its text: `User:*` is anybody."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def concerns(self, principal: str, host: str) -> bool:
        """`host` is the client's, in its canonical form."""
        if self.principal not in {principal, WILDCARD_PRINCIPAL}:
            return False
        return self.host in {host, WILDCARD} or canonical(self.host) == host


class Acl(msgspec.Struct, frozen=True, order=True):
    """One line of the lists."""

    resource: ResourcePattern
    rule: AccessRule


class AclFilter(msgspec.Struct, frozen=True):
    """Which ACLs a request means; None matches everything."""

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
    """Whether it is allowed, and the ACL that decided; None: no ACL did."""

    allowed: bool
    acl: Acl | None = None


class Acls:
    """All ACLs, as of one moment. Never changes: a change makes a new one.

    Decisions are remembered, since a connection asks for the same ones with every request.
    """

    MAX_REMEMBERED: Final = 100_000

    def __init__(
        self,
        acls: Iterable[Acl] = (),
        super_users: frozenset[Principal] = frozenset(),
        *,
        allow_if_none: bool = False,
    ) -> None:
        self.all: Final = frozenset(acls)
        self._super_users, self._allow_if_none = super_users, allow_if_none
        self._literal: dict[tuple[ResourceType, str], list[AccessRule]] = {}
        self._prefixed: dict[ResourceType, dict[str, list[AccessRule]]] = {}
        for each in sorted(self.all):
            kind, name = each.resource.type, each.resource.name
            if each.resource.pattern is PatternType.PREFIXED:
                self._prefixed.setdefault(kind, {}).setdefault(name, []).append(each.rule)
            else:
                self._literal.setdefault((kind, name), []).append(each.rule)
        self._lengths = {
            kind: sorted({len(name) for name in names}) for kind, names in self._prefixed.items()
        }
        self._decided: dict[tuple[Principal, str, AclOperation, ResourceType, str], bool] = {}

    def with_changes(self, added: Iterable[Acl] = (), removed: Iterable[Acl] = ()) -> "Acls":
        return Acls(
            (self.all - frozenset(removed)) | frozenset(added),
            self._super_users,
            allow_if_none=self._allow_if_none,
        )

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
    ) -> bool:
        key = (principal, host, operation, kind, name)
        known = self._decided.get(key)
        if known is None:
            if len(self._decided) >= self.MAX_REMEMBERED:
                self._decided.clear()  # names that clients made up must not fill the memory
            known = self._decided[key] = self.decide(principal, host, operation, kind, name).allowed
        return known

    def decide(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
    ) -> Verdict:
        """The verdict with its reason."""
        if principal in self._super_users:
            return Verdict(allowed=True)
        text, found_any, allow = str(principal), False, None
        for resource, rules in self._about(kind, name):
            for rule in rules:
                found_any = True
                if not rule.concerns(text, host):
                    continue
                if rule.permission is Permission.DENY:
                    if rule.operation in {operation, AclOperation.ALL}:
                        return Verdict(allowed=False, acl=Acl(resource, rule))
                elif allow is None and rule.operation in _ALLOWED_BY[operation]:
                    allow = Acl(resource, rule)
        if allow is not None:
            return Verdict(allowed=True, acl=allow)
        return Verdict(allowed=not found_any and self._allow_if_none)

    def _about(
        self, kind: ResourceType, name: str
    ) -> Iterator[tuple[ResourcePattern, list[AccessRule]]]:
        for literal in dict.fromkeys((name, WILDCARD)):
            rules = self._literal.get((kind, literal))
            if rules:
                yield ResourcePattern(kind, literal), rules
        prefixed = self._prefixed.get(kind, {})
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                return
            rules = prefixed.get(name[:length])
            if rules:
                yield ResourcePattern(kind, name[:length], PatternType.PREFIXED), rules

    def allows_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Whether there is a resource of this type on which the operation is allowed (KIP-679)."""
        if principal in self._super_users:
            return True
        text = str(principal)
        allows: list[tuple[str, bool]] = []
        denied: set[tuple[str, bool]] = set()
        for resource, rules in self._of(kind):
            is_prefix = resource.pattern is PatternType.PREFIXED
            for rule in rules:
                if not rule.concerns(text, host):
                    continue
                if rule.permission is Permission.DENY:
                    if rule.operation in {operation, AclOperation.ALL}:
                        denied.add((resource.name, is_prefix))
                elif rule.operation in {operation, AclOperation.ALL}:
                    allows.append((resource.name, is_prefix))
        if (WILDCARD, False) in denied:
            return False
        if self._allow_if_none and (kind, WILDCARD) not in self._literal:
            return True  # there is always another name, of which no ACL speaks
        prefixes = {name for name, is_prefix in denied if is_prefix}
        for name, is_prefix in allows:
            if name == WILDCARD and not is_prefix:
                return True
            if not is_prefix and (name, False) in denied:
                continue
            if not any(name[:end] in prefixes for end in range(len(name) + 1)):
                return True
        return False

    def _of(self, kind: ResourceType) -> Iterator[tuple[ResourcePattern, list[AccessRule]]]:
        for (found, name), rules in self._literal.items():
            if found is kind:
                yield ResourcePattern(kind, name), rules
        for name, rules in self._prefixed.get(kind, {}).items():
            yield ResourcePattern(kind, name, PatternType.PREFIXED), rules

    def matching(self, wanted: AclFilter) -> list[Acl]:
        return sorted(each for each in self.all if wanted.matches(each))

    def operations(
        self, principal: Principal, host: str, kind: ResourceType, name: str
    ) -> frozenset[AclOperation]:
        """The operations on a resource that are allowed, for responses that tell them."""
        return frozenset(
            each for each in OPERATIONS[kind] if self.allows(principal, host, each, kind, name)
        )
