"""The ZooKeeper format of ACLs, as in Kafka 3.9: one node per resource, with the list of its rules.

`/kafka-acl/Topic/payments` for names, `/kafka-acl-extended/prefixed/Topic/pay` for prefixes. Pure.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from penstock.metadata.records import decode_or_skip, encode
from penstock.metadata.store import Node
from penstock.security.acl import (
    AccessRule,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

logger = logging.getLogger(__name__)

LITERAL_ROOT: Final = "/kafka-acl"
PREFIXED_ROOT: Final = "/kafka-acl-extended/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
PREFIXED_CHANGES: Final = "/kafka-acl-extended-changes"
CHANGES: Final = (LITERAL_CHANGES, PREFIXED_CHANGES)

TYPES: Final[Mapping[str, ResourceType]] = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "Cluster": ResourceType.CLUSTER,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
    "DelegationToken": ResourceType.DELEGATION_TOKEN,
    "User": ResourceType.USER,
}
_TYPE_NAMES: Final = {kind: name for name, kind in TYPES.items()}
_OPERATIONS: Final = {each.name.title().replace("_", ""): each for each in AclOperation}
_OPERATION_NAMES: Final = {each: name for name, each in _OPERATIONS.items()}
_PERMISSIONS: Final = {"Allow": Permission.ALLOW, "Deny": Permission.DENY}
_PERMISSION_NAMES: Final = {each: name for name, each in _PERMISSIONS.items()}

PARENTS: Final = {
    f"{root}/{name}": (kind, pattern)
    for root, pattern in (
        (LITERAL_ROOT, PatternType.LITERAL),
        (PREFIXED_ROOT, PatternType.PREFIXED),
    )
    for name, kind in TYPES.items()
}
"""The parent nodes of resources, with the resource type and pattern of each."""


class StoredRule(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of a resource's list."""

    principal: str
    permission_type: str
    operation: str
    host: str


class StoredAcls(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a resource's node."""

    version: int = 1
    acls: list[StoredRule] = msgspec.field(default_factory=list)


class ExtendedChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The notification of a change to a prefix."""

    version: int = 1
    resource_type: str
    name: str
    pattern_type: str


def path_of(resource: ResourcePattern) -> str:
    root = PREFIXED_ROOT if resource.pattern is PatternType.PREFIXED else LITERAL_ROOT
    return f"{root}/{_TYPE_NAMES[resource.type]}/{resource.name}"


def resource_at(path: str) -> ResourcePattern:
    parent, _, name = path.rpartition("/")
    kind, pattern = PARENTS[parent]
    return ResourcePattern(kind, name, pattern)


def rules_in(node: Node) -> frozenset[AccessRule] | None:
    """The rules in a resource's node; None if the node cannot be read."""
    stored = decode_or_skip(StoredAcls, node)
    if stored is None:
        return None
    found = set()
    for each in stored.acls:
        operation, permission = (
            _OPERATIONS.get(each.operation),
            _PERMISSIONS.get(each.permission_type),
        )
        if operation is None or permission is None:
            return None
        found.add(AccessRule(each.principal, each.host, operation, permission))
    return frozenset(found)


def node_data(rules: Iterable[AccessRule]) -> bytes:
    return encode(
        StoredAcls(
            acls=[
                StoredRule(
                    each.principal,
                    _PERMISSION_NAMES[each.permission],
                    _OPERATION_NAMES[each.operation],
                    each.host,
                )
                for each in sorted(rules)
            ]
        )
    )


def change_of(resource: ResourcePattern) -> tuple[str, bytes]:
    """The notification of a change: the path of its sequential node, and its data."""
    if resource.pattern is PatternType.PREFIXED:
        change = ExtendedChange(
            resource_type=resource.type.name,
            name=resource.name,
            pattern_type=resource.pattern.name,
        )
        return f"{PREFIXED_CHANGES}/acl_changes_", encode(change)
    return f"{LITERAL_CHANGES}/acl_changes_", f"{resource.type.name}:{resource.name}".encode()


def acls_of(nodes: Iterable[Node]) -> set[Acl]:
    """All ACLs of these nodes. A node that cannot be read denies its resource to everyone."""
    found: set[Acl] = set()
    for node in nodes:
        resource = resource_at(node.path)
        rules = rules_in(node)
        if rules is None:
            logger.error(
                "%s cannot be read: until it is corrected or deleted, only super users may use %s",
                node.path,
                resource,
            )
            rules = frozenset({AccessRule("User:*", "*", AclOperation.ALL, Permission.DENY)})
        found |= {Acl(resource, each) for each in rules}
    return found
