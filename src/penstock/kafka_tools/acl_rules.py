"""Translates the options of `kafka-acls.sh` into resources and ACL rules. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from penstock.client.acls import AclBinding, AclBindingFilter
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.principals import principals
from penstock.security.acl import (
    CLUSTER_NAME,
    OPERATIONS,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)

ANY_NAME = "*"
TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
"""Resource types by the option that names a resource; `--cluster` has no name."""
_Op = AclOperation
PRODUCER: Mapping[ResourceType, Sequence[AclOperation]] = {
    ResourceType.TOPIC: (_Op.WRITE, _Op.DESCRIBE, _Op.CREATE),
    ResourceType.TRANSACTIONAL_ID: (_Op.WRITE, _Op.DESCRIBE),
}
IDEMPOTENT: Mapping[ResourceType, Sequence[AclOperation]] = {
    ResourceType.CLUSTER: (_Op.IDEMPOTENT_WRITE,),
}
CONSUMER: Mapping[ResourceType, Sequence[AclOperation]] = {
    ResourceType.TOPIC: (_Op.READ, _Op.DESCRIBE),
    ResourceType.GROUP: (_Op.READ,),
}
NO_RESOURCE = (
    "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
    "--delegation-token <Delegation Token ID>"
)


class AclResource(NamedTuple):
    """A resource pattern, or a filter of patterns."""

    type: ResourceType
    name: str
    pattern: PatternType

    def __str__(self) -> str:
        kind, pattern = self.type.name, self.pattern.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"


class AclRule(NamedTuple):
    """An ACL entry without its resource."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


Rules = dict[AclResource, list[AclRule]]


def resources(args: Arguments) -> list[AclResource]:
    """The resources that the options name; none means all."""
    pattern = pattern_type(args)
    found = [
        AclResource(kind, each.strip(), pattern)
        for option, kind in TYPES.items()
        for each in args.all(option)
    ]
    # The cluster has one fixed name, so only a literal pattern can match it.
    if pattern is PatternType.LITERAL and args.has("cluster", "idempotent"):
        found.append(AclResource(ResourceType.CLUSTER, CLUSTER_NAME, pattern))
    return list(dict.fromkeys(found))


def rules(args: Arguments) -> Rules:
    """The rules to add or remove; a resource without rules stands for all its rules."""
    named = resources(args)
    if not named:
        raise UsageError(NO_RESOURCE)
    found: Rules = {}
    roles = [
        *([PRODUCER] if args.has("producer") else []),
        *([IDEMPOTENT] if args.has("idempotent") else []),
        *([CONSUMER] if args.has("consumer") else []),
    ]
    for role in roles:
        for each in named:
            if each.type in role:
                found.setdefault(each, []).extend(_granted(args, role[each.type]))
    if not roles:
        granted = _granted(args, [operation(each) for each in args.all("operation") or ["All"]])
        found = dict.fromkeys(named, granted)
    found = {each: list(dict.fromkeys(granted)) for each, granted in found.items()}
    for each, granted in found.items():
        _check_known(each.type, granted)
    return found


def _granted(args: Arguments, operations: Iterable[AclOperation]) -> list[AclRule]:
    operations = list(operations)
    return [
        AclRule(who, host, what, permission)
        for verb, permission in (("allow", Permission.ALLOW), ("deny", Permission.DENY))
        for who, what, host in product(
            principals(args, f"{verb}-principal"),
            operations,
            [each.strip() for each in args.all(f"{verb}-host")] or [ANY_NAME],
        )
    ]


def _check_known(kind: ResourceType, granted: Iterable[AclRule]) -> None:
    known = {*OPERATIONS[kind], AclOperation.ALL}
    if any(each.operation not in known for each in granted):
        names = ", ".join(each.name for each in sorted(known))
        raise UsageError(f"ResourceType {kind.name} only supports operations [{names}]")


def pattern_type(args: Arguments) -> PatternType:
    given = args.text("resource-pattern-type")
    try:
        return PatternType[given.upper()]
    except KeyError:
        raise UsageError(
            f"Cannot parse argument '{given}' of option resource-pattern-type"
        ) from None


def operation(name: str) -> AclOperation:
    """The operation, spelt as in Kafka's options (`AlterConfigs`) or output (`ALTER_CONFIGS`)."""
    plain = name.strip().replace("_", "").lower()
    return next(
        (each for each in AclOperation if each.name.replace("_", "").lower() == plain),
        AclOperation.UNKNOWN,
    )


def filter_of(resource: AclResource, rule: AclRule | None = None) -> AclBindingFilter:
    """The filter for a broker; without a rule, it matches all rules of the resource."""
    of = AclBindingFilter(resource_type=resource.type, name=resource.name, pattern=resource.pattern)
    if rule is None:
        return of
    return AclBindingFilter(
        resource_type=of.resource_type,
        name=of.name,
        pattern=of.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission=rule.permission,
    )


def binding_of(resource: AclResource, rule: AclRule) -> AclBinding:
    return AclBinding(
        resource.type,
        resource.name,
        resource.pattern,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )


def by_resource(found: Iterable[AclBinding]) -> Rules:
    grouped: Rules = {}
    for each in found:
        of = AclResource(ResourceType(each.resource_type), each.name, PatternType(each.pattern))
        operation, permission = AclOperation(each.operation), Permission(each.permission)
        grouped.setdefault(of, []).append(AclRule(each.principal, each.host, operation, permission))
    return grouped
