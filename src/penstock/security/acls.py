"""The ACLs of a cluster, and the decisions they lead to. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.security.acl import (
    ALLOWED_BY,
    OPERATIONS,
    WILDCARD,
    AccessRule,
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Verdict,
)
from penstock.security.principal import Principal


class Acls:
    """All ACLs at one moment. Immutable: a change makes a new object.

    Decisions are cached, since a connection needs the same ones for every request.
    """

    MAX_REMEMBERED: Final = 100_000
    MAX_NAME: Final = 249
    """Longest name in the cache: topics have none longer, but a request may (32,767)."""

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
            known = self.decide(principal, host, operation, kind, name).allowed
            # Names that clients invent must not fill the memory.
            if len(self._decided) >= self.MAX_REMEMBERED:
                self._decided.clear()
            if len(name) <= self.MAX_NAME:
                self._decided[key] = known
        return known

    def decide(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
    ) -> Verdict:
        """The decision, with the ACL that decided it."""
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
                elif allow is None and rule.operation in ALLOWED_BY[operation]:
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
        return self.decide_any(principal, host, operation, kind).allowed

    def decide_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> Verdict:
        """Whether there is a resource of this type on which the operation is allowed (KIP-679)."""
        if principal in self._super_users:
            return Verdict(allowed=True)
        text = str(principal)
        allows: list[Acl] = []
        denied: dict[tuple[str, bool], Acl] = {}
        for resource, rules in self._of(kind):
            for rule in rules:
                if not rule.concerns(text, host):
                    continue
                if rule.permission is Permission.DENY:
                    if rule.operation in {operation, AclOperation.ALL}:
                        is_prefix = resource.pattern is PatternType.PREFIXED
                        denied[resource.name, is_prefix] = Acl(resource, rule)
                elif rule.operation in {operation, AclOperation.ALL}:
                    allows.append(Acl(resource, rule))
        if (WILDCARD, False) in denied:
            return Verdict(allowed=False, acl=denied[WILDCARD, False])
        if self._allow_if_none and (kind, WILDCARD) not in self._literal:
            return Verdict(allowed=True)  # there is always a name that no ACL covers
        prefixes = {name for name, is_prefix in denied if is_prefix}
        for each in allows:
            name, is_prefix = each.resource.name, each.resource.pattern is PatternType.PREFIXED
            if name == WILDCARD and not is_prefix:
                return Verdict(allowed=True, acl=each)
            if not is_prefix and (name, False) in denied:
                continue
            if not any(name[:end] in prefixes for end in range(len(name) + 1)):
                return Verdict(allowed=True, acl=each)
        return Verdict(allowed=False)

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
        """The allowed operations on a resource, for responses that list them."""
        return frozenset(
            each for each in OPERATIONS[kind] if self.allows(principal, host, each, kind, name)
        )
