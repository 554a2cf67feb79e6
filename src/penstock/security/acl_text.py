"""Access rules in the command line's notation: `topic:payments`, `bob`, `read`. Pure."""

from typing import Any

from penstock.errors import ConfigError
from penstock.security.acl import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from penstock.security.principal import Principal, parse_principal
from penstock.security.principal import user as user_principal

TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
OPERATION_NAMES = {
    each.name.lower().replace("_", "-"): each for each in AclOperation if each >= AclOperation.ALL
}


def resource_of(text: str) -> ResourcePattern:
    r"""Parse `topic:payments`. A name that ends with a star is a prefix, but `\*` is a literal
    star, and before that star `\\` is a backslash; `cluster` has no name.
    """
    kind, colon, name = text.partition(":")
    if kind not in TYPES:
        raise ConfigError(f"{kind!r} is not a type of resource: use {', '.join(TYPES)}")
    if TYPES[kind] is ResourceType.CLUSTER:
        return ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
    if not colon or not name:
        raise ConfigError(f"{text!r} names no resource: write {kind}:NAME")
    if not name.endswith("*") or name == WILDCARD:
        return ResourcePattern(TYPES[kind], name)
    rest = name[:-1].rstrip("\\")
    backslashes, is_star = divmod(len(name) - 1 - len(rest), 2)
    rest += "\\" * backslashes
    if is_star:
        return ResourcePattern(TYPES[kind], f"{rest}*")
    return ResourcePattern(TYPES[kind], rest, PatternType.PREFIXED)


def principal_of(text: str) -> Principal:
    """Parse `User:bob`, or `bob` for short. A certificate's subject may itself have a colon."""
    found = parse_principal(text)
    is_typed = found is not None and found.kind.isalpha()
    return found if found is not None and is_typed else user_principal(text)


def operation_of(text: str) -> AclOperation:
    found = OPERATION_NAMES.get(text.lower().replace("_", "-"))
    if found is None:
        raise ConfigError(f"{text!r} is not an operation: use {', '.join(OPERATION_NAMES)}")
    return found


def text_of(resource: ResourcePattern) -> str:
    kind = TYPE_NAMES.get(resource.type, str(resource.type))
    if resource.type is ResourceType.CLUSTER:
        return kind
    if resource.pattern is PatternType.PREFIXED:
        return f"{kind}:{_escaped(resource.name)}*"
    # Kafka's tool takes `--topic 'pay*'` as this literal name, which must not look like a prefix.
    is_starred = resource.name.endswith("*") and resource.name != WILDCARD
    return f"{kind}:{_escaped(resource.name[:-1])}\\*" if is_starred else f"{kind}:{resource.name}"


def _escaped(before_star: str) -> str:
    """Doubles the backslashes at the end, so that they do not escape the star that follows."""
    return before_star + "\\" * (len(before_star) - len(before_star.rstrip("\\")))


def check_known(kind: ResourceType, operation: AclOperation) -> None:
    known = OPERATIONS[kind]
    if operation is not AclOperation.ALL and operation not in known:
        names = sorted(each.name.lower().replace("_", "-") for each in known)
        raise ConfigError(f"a {TYPE_NAMES[kind]} knows only {', '.join(names)}, all")


def row(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.rule.principal,
        "permission": acl.rule.permission.name.lower(),
        "operation": acl.rule.operation.name.lower().replace("_", "-"),
        "resource": text_of(acl.resource),
        "host": acl.rule.host,
    }
