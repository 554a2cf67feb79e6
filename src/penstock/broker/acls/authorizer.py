"""The ACLs of the cluster in the store: reads, follows and alters them."""

import logging
from collections.abc import Iterable

from penstock.broker.acls.access import Access, AuthenticatedClient
from penstock.broker.acls.acl_nodes import (
    CHANGES,
    PARENTS,
    acls_of,
    change_of,
    node_data,
    path_of,
    rules_in,
)
from penstock.clock import Clock
from penstock.counted import counted
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion, NodeExists, NoNode
from penstock.metadata.following import follow
from penstock.metadata.store import Create, Delete, MetadataStore, Node, Operation, Set
from penstock.security.acl import AccessRule, Acl, AclFilter, ResourcePattern
from penstock.security.acls import Acls
from penstock.security.principal import Principal

logger = logging.getLogger(__name__)

ATTEMPTS = 10
NOTIFICATION_LIFE_MS = 15 * 60 * 1000


class AclsNotWritten(KafkaError):
    """Other brokers altered the same resource again and again, or its node is damaged."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class Authorizer:
    """Holds the current ACLs, which are replaced as a whole. Belongs to the event loop.

    Every broker writes to the store itself, as in Kafka 3.9, by compare-and-set, and notifies the
    others by a node under `/kafka-acl-changes` or `/kafka-acl-extended-changes`.
    """

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        super_users: frozenset[Principal],
        *,
        allow_if_none: bool,
    ) -> None:
        self._store, self._clock = store, clock
        self._none = Acls((), super_users, allow_if_none=allow_if_none)
        self.acls = self._none
        self._refused_brokers: set[tuple[str, ...]] = set()
        self._begun = self._taken = 0

    def access(self, client: AuthenticatedClient, request: str) -> Access:
        return Access(self.acls, client, request, self._refused_brokers)

    async def open(self) -> None:
        """Read the ACLs; call it before serving anything."""
        for path in (*PARENTS, *CHANGES):
            for each in paths.with_parents(path):
                try:
                    await self._store.create(each)
                except NodeExists:
                    continue
        await self._read()

    async def follow(self) -> None:
        """Read the ACLs again after each change, until cancelled."""
        await follow(self._store, self._read, "the ACLs", children=CHANGES)

    async def _read(self) -> None:
        """Read all ACLs: they are few, and a notification may be missed while the store is
        unreachable.

        A read must not replace the result of one that began later: a rule that applies already
        would be gone until the next read.
        """
        self._begun += 1
        number = self._begun
        names = await self._store.children_many(PARENTS)
        listed = [f"{parent}/{name}" for parent, found in names.items() for name in found]
        found = acls_of((await self._store.get_many(listed)).values())
        if number < self._taken:
            return
        self._taken = number
        if found != self.acls.all:
            self.acls = self._none.with_changes(added=found)
            self._refused_brokers.clear()
            logger.info("%s in force", counted(len(found), "ACL is", "ACLs are"))

    async def create(self, acls: Iterable[Acl]) -> None:
        for resource, rules in _by_resource(acls).items():
            await self._alter(resource, added=rules)
        await self._read()

    async def delete(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match the filter; returns them."""
        await self._read()
        matching = self.acls.matching(wanted)
        for resource, rules in _by_resource(matching).items():
            await self._alter(resource, removed=rules)
        await self._read()
        return matching

    async def _alter(
        self,
        resource: ResourcePattern,
        added: frozenset[AccessRule] = frozenset(),
        removed: frozenset[AccessRule] = frozenset(),
    ) -> None:
        for _ in range(ATTEMPTS):
            path = path_of(resource)
            node = (await self._store.get_many([path])).get(path)
            before = frozenset[AccessRule]()
            if node is not None:
                known = rules_in(node)
                if known is None:
                    raise AclsNotWritten(f"{path} cannot be read: correct or delete it first")
                before = known
            after = (before | added) - removed
            if after == before:
                return
            try:
                await self._store.multi([_write(path, node, after), *self._notice(resource)])
            except (BadVersion, NodeExists, NoNode):
                continue  # another broker was faster
            await self._drop_old_notices()
            return
        raise AclsNotWritten(f"the ACLs of {resource} are being altered by others; try again")

    def _notice(self, resource: ResourcePattern) -> list[Operation]:
        path, data = change_of(resource)
        return [Create(path, data, sequential=True)]

    async def _drop_old_notices(self) -> None:
        for parent, names in (await self._store.children_many(CHANGES)).items():
            nodes = await self._store.get_many(f"{parent}/{name}" for name in names)
            old = self._clock.now_ms() - NOTIFICATION_LIFE_MS
            await self._store.multi_many(
                [Delete(path)] for path, node in nodes.items() if node.created_ms < old
            )


def _write(path: str, node: Node | None, rules: frozenset[AccessRule]) -> Operation:
    if node is None:
        return Create(path, node_data(rules))
    return Set(path, node_data(rules), node.version) if rules else Delete(path, node.version)


def _by_resource(acls: Iterable[Acl]) -> dict[ResourcePattern, frozenset[AccessRule]]:
    found: dict[ResourcePattern, frozenset[AccessRule]] = {}
    for each in acls:
        found[each.resource] = found.get(each.resource, frozenset()) | {each.rule}
    return found
