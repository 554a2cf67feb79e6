"""ACLs in the store: Kafka 3.9's paths and contents, and changes by several brokers."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from penstock.broker.acls.acl_nodes import (
    acls_of,
    change_of,
    node_data,
    path_of,
    resource_at,
    rules_in,
)
from penstock.broker.acls.authorizer import AclsNotWritten, Authorizer
from penstock.clock import SystemClock
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.store import Node
from penstock.metadata.tree import Tree
from penstock.security.acl import (
    AccessRule,
    Acl,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.principal import user

TOPIC = ResourcePattern(ResourceType.TOPIC, "payments")
PREFIX = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "pay", PatternType.PREFIXED)
READ = AccessRule("User:alice", "*", AclOperation.READ, Permission.ALLOW)
CONFIGS = AccessRule("User:bob", "10.0.0.1", AclOperation.DESCRIBE_CONFIGS, Permission.DENY)


def node(path: str, data: bytes) -> Node:
    return Node(path, data, 0, 1, 1, 1)


def test_paths_and_contents_match_kafka() -> None:
    assert path_of(TOPIC) == "/kafka-acl/Topic/payments"
    assert path_of(PREFIX) == "/kafka-acl-extended/prefixed/TransactionalId/pay"
    for each in (TOPIC, PREFIX):
        assert resource_at(path_of(each)) == each
    assert json.loads(node_data([CONFIGS, READ])) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:alice",
                "permissionType": "Allow",
                "operation": "Read",
                "host": "*",
            },
            {
                "principal": "User:bob",
                "permissionType": "Deny",
                "operation": "DescribeConfigs",
                "host": "10.0.0.1",
            },
        ],
    }
    assert change_of(TOPIC) == ("/kafka-acl-changes/acl_changes_", b"TOPIC:payments")
    path, data = change_of(PREFIX)
    assert path == "/kafka-acl-extended-changes/acl_changes_"
    assert json.loads(data) == {
        "version": 1,
        "resourceType": "TRANSACTIONAL_ID",
        "name": "pay",
        "patternType": "PREFIXED",
    }


@pytest.mark.parametrize("operation", [each for each in AclOperation if each > 1])
def test_every_operation_is_read_back(operation: AclOperation) -> None:
    rule = AccessRule("User:a", "*", operation, Permission.ALLOW)
    found = rules_in(node("/kafka-acl/Topic/t", node_data([rule])))
    assert found == frozenset({rule})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        b'{"version":1,"acls":[{"principal":"User:a"}]}',
        node_data([READ]).replace(b"Read", b"Fly"),
    ],
)
def test_an_unreadable_node_denies_access_to_its_resource(data: bytes) -> None:
    found = acls_of([node("/kafka-acl/Topic/payments", data)])
    everybody = AccessRule("User:*", "*", AclOperation.ALL, Permission.DENY)
    assert found == {Acl(TOPIC, everybody)}


def brokers(tree: Tree, count: int) -> list[Authorizer]:
    loop = asyncio.get_running_loop()
    return [
        Authorizer(
            EmbeddedStore(tree, loop.call_soon), SystemClock(), frozenset(), allow_if_none=False
        )
        for _ in range(count)
    ]


def test_acls_written_by_one_broker_apply_on_the_others(tmp_path: Path) -> None:
    async def main(tree: Tree) -> None:
        one, other = brokers(tree, 2)
        await one.open()
        await other.open()
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            following = tasks.create_task(other.follow())
            await one.create([Acl(TOPIC, READ), Acl(PREFIX, CONFIGS)])
            assert one.acls.all == {Acl(TOPIC, READ), Acl(PREFIX, CONFIGS)}
            while other.acls.all != one.acls.all:
                await asyncio.sleep(0.01)
            assert await other.delete(AclFilter(ResourceType.TOPIC)) == [Acl(TOPIC, READ)]
            assert other.acls.all == {Acl(PREFIX, CONFIGS)}
            following.cancel()
        late = brokers(tree, 1)[0]
        await late.open()
        assert late.acls.all == {Acl(PREFIX, CONFIGS)}

    with closing(Tree.open(tmp_path / "tree", SystemClock())) as tree:
        asyncio.run(main(tree))


class SlowStore(EmbeddedStore):
    """Its next look for children is answered late: others begin and end meanwhile."""

    held: asyncio.Event | None = None
    looks = 0

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        found = await super().children_many(paths)
        self.looks += 1
        held, self.held = self.held, None
        if held is not None:
            await held.wait()
        return found


def test_a_slow_read_does_not_take_back_a_newer_rule(tmp_path: Path) -> None:
    deny = AccessRule("User:*", "*", AclOperation.READ, Permission.DENY)

    async def main(tree: Tree) -> None:
        store = SlowStore(tree, asyncio.get_running_loop().call_soon)
        authorizer = Authorizer(store, SystemClock(), frozenset(), allow_if_none=True)
        await authorizer.open()
        store.held, looks = (held := asyncio.Event()), store.looks
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            tasks.create_task(authorizer.open())  # reads once
            while store.looks == looks:
                await asyncio.sleep(0)
            await authorizer.create([Acl(TOPIC, deny)])
            held.set()
        assert authorizer.acls.all == {Acl(TOPIC, deny)}

    with closing(Tree.open(tmp_path / "tree", SystemClock())) as tree:
        asyncio.run(main(tree))


def test_concurrent_rules_of_several_brokers_are_all_stored(tmp_path: Path) -> None:
    async def main(tree: Tree) -> None:
        several = brokers(tree, 4)
        await several[0].open()
        rules = [
            Acl(TOPIC, AccessRule(f"User:u{n}", "*", AclOperation.READ, Permission.ALLOW))
            for n in range(20)
        ]
        async with asyncio.TaskGroup() as tasks:
            for number, each in enumerate(rules):
                tasks.create_task(several[number % 4].create([each]))
        await several[0].open()
        assert several[0].acls.all == set(rules)
        async with asyncio.TaskGroup() as tasks:
            for number, each in enumerate(rules):
                wanted = AclFilter(principal=each.rule.principal)
                tasks.create_task(several[number % 4].delete(wanted))
        await several[0].open()
        assert several[0].acls.all == set()
        assert not await several[0]._store.exists(path_of(TOPIC))

    with closing(Tree.open(tmp_path / "tree", SystemClock())) as tree:
        asyncio.run(main(tree))


def test_a_damaged_node_is_not_overwritten(tmp_path: Path) -> None:
    async def main(tree: Tree) -> None:
        (one,) = brokers(tree, 1)
        await one.open()
        await one._store.create(path_of(TOPIC), b"junk")
        with pytest.raises(AclsNotWritten, match="/kafka-acl/Topic/payments cannot be read"):
            await one.create([Acl(TOPIC, READ)])
        await one.open()
        assert not one.acls.allows(
            user("alice"), "h", AclOperation.READ, ResourceType.TOPIC, "payments"
        )

    with closing(Tree.open(tmp_path / "tree", SystemClock())) as tree:
        asyncio.run(main(tree))
