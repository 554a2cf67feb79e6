"""Single access rules; `tests/property/test_acl_model.py` compares any set with a model."""

import pytest

from penstock.security.acl import (
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
from penstock.security.acls import Acls
from penstock.security.principal import user

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
HOST = "10.0.0.1"
ALICE = user("alice")


def acl(
    operation: AclOperation,
    name: str = "payments",
    *,
    deny: bool = False,
    prefixed: bool = False,
    principal: str = "User:alice",
    host: str = "*",
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(
        ResourcePattern(kind, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL),
        AccessRule(principal, host, operation, Permission.DENY if deny else Permission.ALLOW),
    )


def may(operation: AclOperation, *acls: Acl, name: str = "payments", host: str = HOST) -> bool:
    return Acls(acls).allows(ALICE, host, operation, TOPIC, name)


def test_numbers_are_those_of_the_wire() -> None:
    for kind, count in ((ResourceType, 8), (PatternType, 5), (Permission, 4), (AclOperation, 16)):
        assert [each.value for each in kind] == list(range(count)), kind


def test_without_an_acl_only_super_users_are_allowed() -> None:
    assert not may(READ)
    assert Acls((), frozenset({ALICE})).allows(ALICE, HOST, READ, TOPIC, "payments")
    assert Acls((), allow_if_none=True).allows(ALICE, HOST, READ, TOPIC, "payments")


def test_any_acl_of_the_resource_ends_allow_everyone_if_no_acl_found() -> None:
    others = acl(READ, principal="User:bob")
    acls = Acls([others], allow_if_none=True)
    assert not acls.allows(ALICE, HOST, READ, TOPIC, "payments")
    assert acls.allows(ALICE, HOST, READ, TOPIC, "orders")


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_an_allow_implies_describe_and_a_deny_does_not(operation: AclOperation) -> None:
    assert may(DESCRIBE, acl(operation))
    assert may(DESCRIBE, acl(DESCRIBE), acl(operation, deny=True))
    assert not may(operation, acl(DESCRIBE))


def test_alter_configs_implies_describe_configs_only() -> None:
    one = acl(AclOperation.ALTER_CONFIGS)
    assert may(AclOperation.DESCRIBE_CONFIGS, one)
    assert not may(DESCRIBE, one)


def test_all_means_every_operation_in_a_deny_too() -> None:
    assert may(READ, acl(AclOperation.ALL))
    assert not may(DESCRIBE, acl(AclOperation.ALL, deny=True), acl(DESCRIBE))


def test_a_deny_wins_over_any_allow() -> None:
    allow = acl(READ)
    assert not may(READ, allow, acl(READ, "*", deny=True))
    assert not may(READ, allow, acl(READ, "pay", deny=True, prefixed=True))
    assert not may(READ, acl(READ, "*"), acl(READ, deny=True, principal="User:*"))


def test_names_match_literally_by_prefix_or_all() -> None:
    assert may(READ, acl(READ, "*"))
    assert may(READ, acl(READ, "pay", prefixed=True))
    assert may(READ, acl(READ, "payments", prefixed=True))
    assert not may(READ, acl(READ, "pay"))
    assert not may(READ, acl(READ, "payments-eu", prefixed=True))
    assert not may(READ, acl(READ, "*", prefixed=True))


def test_hosts_are_compared_as_text() -> None:
    assert may(READ, acl(READ, host=HOST))
    assert not may(READ, acl(READ, host="10.0.0.2"))
    assert may(READ, acl(READ), acl(READ, host="10.0.0.2", deny=True))


def test_an_address_may_be_written_as_in_java() -> None:
    denied = acl(READ, host="2001:DB8:0:0:0:0:0:1", deny=True)
    assert not may(READ, acl(READ), denied, host="2001:db8::1")
    assert may(READ, acl(READ), denied, host="2001:db8::2")
    assert may(READ, acl(READ), acl(READ, host="no:address", deny=True), host="::1")


def test_a_verdict_names_the_acl_that_decided() -> None:
    allow, deny = acl(READ), acl(READ, "pay", deny=True, prefixed=True)
    assert Acls([allow]).decide(ALICE, HOST, READ, TOPIC, "payments").acl == allow
    assert Acls([allow, deny]).decide(ALICE, HOST, READ, TOPIC, "payments").acl == deny
    assert str(deny.resource) == "Topic:PREFIXED:pay"


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        ((acl(WRITE),), True),
        ((acl(WRITE, "*"),), True),
        ((acl(AclOperation.ALL, "p", prefixed=True),), True),
        ((acl(WRITE), acl(WRITE, deny=True)), False),
        ((acl(WRITE), acl(WRITE, "*", deny=True)), False),
        ((acl(WRITE), acl(WRITE, "pay", deny=True, prefixed=True)), False),
        ((acl(WRITE, "pay", prefixed=True), acl(WRITE, deny=True)), True),
        (
            (acl(WRITE, "pay", prefixed=True), acl(WRITE, "payments", deny=True, prefixed=True)),
            True,
        ),
        ((acl(WRITE, "*"), acl(WRITE, "pay", deny=True, prefixed=True)), True),
        (
            (acl(WRITE, "pay", prefixed=True), acl(WRITE, "pay", deny=True, prefixed=True)),
            False,
        ),
        ((acl(READ),), False),
        ((acl(WRITE, kind=GROUP),), False),
        ((acl(WRITE, principal="User:bob"),), False),
    ],
)
def test_some_writable_topic_is_found(acls: tuple[Acl, ...], *, expected: bool) -> None:
    assert Acls(acls).allows_any(ALICE, HOST, WRITE, TOPIC) is expected


def test_some_topic_is_writable_where_everyone_is_allowed_what_no_acl_covers() -> None:
    assert Acls([acl(READ)], allow_if_none=True).allows_any(ALICE, HOST, WRITE, TOPIC)
    others = acl(READ, "*", principal="User:bob")
    assert not Acls([others], allow_if_none=True).allows_any(ALICE, HOST, WRITE, TOPIC)


def test_a_filter_matches_by_pattern() -> None:
    literal, wildcard = acl(READ), acl(READ, "*")
    prefix = acl(READ, "pay", prefixed=True)
    acls = Acls([literal, wildcard, prefix])

    def found(name: str | None, pattern: PatternType) -> set[Acl]:
        return set(acls.matching(AclFilter(TOPIC, name, pattern)))

    assert found("payments", PatternType.LITERAL) == {literal}
    assert found("payments", PatternType.MATCH) == {literal, wildcard, prefix}
    assert found("pay", PatternType.MATCH) == {wildcard, prefix}
    assert found("pay", PatternType.ANY) == {prefix}
    assert found(None, PatternType.PREFIXED) == {prefix}
    assert set(acls.matching(AclFilter(GROUP))) == set()


def test_the_allowed_operations_of_a_resource_are_listed() -> None:
    acls = Acls([acl(AclOperation.ALL), acl(WRITE, deny=True)])
    assert acls.operations(ALICE, HOST, TOPIC, "payments") == OPERATIONS[TOPIC] - {WRITE}


def test_names_made_up_by_clients_do_not_fill_the_memory() -> None:
    acls = Acls([acl(READ)])
    for number in range(Acls.MAX_REMEMBERED + 10):
        acls.allows(ALICE, HOST, READ, TOPIC, str(number))
    assert len(acls._decided) <= Acls.MAX_REMEMBERED


def test_long_names_made_up_by_clients_do_not_fill_the_memory() -> None:
    acls = Acls([acl(READ)])
    name = "x" * 32_767
    assert not acls.allows(ALICE, HOST, READ, TOPIC, name)
    assert not acls.allows(ALICE, HOST, READ, TOPIC, name), "decided anew"
    assert not acls._decided
