"""Any set of ACLs, added and removed in any order, decides like a plain model of Kafka's rules."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import NotAuthorized
from penstock.broker.authorization.table import GUARDS
from penstock.security.acl import (
    CLUSTER_NAME,
    AccessRule,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.acls import Acls
from penstock.security.principal import Principal, user
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
KINDS = (
    TOPIC,
    ResourceType.GROUP,
    CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.USER,
)
NAMES = ("a", "ab", "abc", "b", "*")
OPS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.CLUSTER_ACTION,
    AclOperation.IDEMPOTENT_WRITE,
    AclOperation.CREATE_TOKENS,
)
IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}

acls = st.builds(
    Acl,
    st.one_of(
        st.builds(
            ResourcePattern,
            st.sampled_from(KINDS),
            st.sampled_from(NAMES),
            st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
        ),
        st.builds(ResourcePattern, st.just(CLUSTER), st.sampled_from((CLUSTER_NAME, "*"))),
    ),
    st.builds(
        AccessRule,
        st.sampled_from(("User:alice", "User:bob", "User:*")),
        st.sampled_from(("h1", "h2", "*")),
        st.sampled_from(OPS),
        st.sampled_from((Permission.ALLOW, Permission.DENY)),
    ),
)
changes = st.lists(st.tuples(st.booleans(), acls), max_size=25)
everyone = st.booleans()


def model(
    held: set[Acl], operation: AclOperation, kind: ResourceType, name: str, *, everyone: bool
) -> bool:
    """Kafka's rules for User:alice at h1, each as a sentence."""
    about = [
        each
        for each in held
        if each.resource.type is kind
        and (
            name.startswith(each.resource.name)
            if each.resource.pattern is PatternType.PREFIXED
            else each.resource.name in (name, "*")
        )
    ]
    if not about:
        return everyone
    hers = [
        each.rule for each in about if each.rule.principal != "User:bob" and each.rule.host != "h2"
    ]
    denied = {each.operation for each in hers if each.permission is Permission.DENY}
    allowed = {each.operation for each in hers if each.permission is Permission.ALLOW}
    if denied & {operation, AclOperation.ALL}:
        return False
    return bool(allowed & ({operation, AclOperation.ALL} | IMPLIED.get(operation, set())))


@given(changes, everyone)
def test_a_set_after_any_changes_decides_as_the_model(
    steps: list[tuple[bool, Acl]], everyone: bool
) -> None:
    held: set[Acl] = set()
    lists = Acls(allow_if_none=everyone)
    for adds, acl in steps:
        held = held | {acl} if adds else held - {acl}
        lists = lists.with_changes([acl], []) if adds else lists.with_changes([], [acl])
    assert lists.all == held
    names = [(kind, name) for kind in KINDS for name in ("a", "ab", "abcd", "c")]
    for kind, name in [*names, (CLUSTER, CLUSTER_NAME)]:
        for operation in OPS[1:]:
            expected = model(held, operation, kind, name, everyone=everyone)
            asked = (user("alice"), "h1", operation, kind, name)
            assert lists.allows(*asked) is expected
            assert lists.allows(*asked) is expected, "as it is remembered"


@given(changes, everyone)
def test_some_topic_is_allowed_if_and_only_if_there_is_one(
    steps: list[tuple[bool, Acl]], everyone: bool
) -> None:
    held = {acl for _, acl in steps}
    lists = Acls(held, allow_if_none=everyone)
    # Names that tell all patterns apart: each literal, and one that continues each prefix.
    names = {*NAMES[:-1], *(f"{name}~" for name in NAMES), "~"}

    def may(operation: AclOperation, kind: ResourceType, name: str) -> bool:
        return model(held, operation, kind, name, everyone=everyone)

    found = any(may(AclOperation.WRITE, TOPIC, name) for name in names)
    assert lists.allows_any(user("alice"), "h1", AclOperation.WRITE, TOPIC) is found
    # An idempotent write needs write access to any topic, or the cluster's permission.
    idempotent = may(AclOperation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME) or found
    assert is_given_a_producer_id(lists) is idempotent


class Alice:
    principal: Principal = user("alice")
    host = "h1"


def is_given_a_producer_id(lists: Acls) -> bool:
    def handler(*_: Any) -> InitProducerIdResponse:
        return InitProducerIdResponse()

    try:
        asks = Access(lists, Alice(), "InitProducerId", set())
        return GUARDS[22](InitProducerIdRequest(None), cast("Any", None), handler, asks) is not None
    except NotAuthorized:
        return False
