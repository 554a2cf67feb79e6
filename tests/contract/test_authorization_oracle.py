"""Authorization compared with a real Kafka that has the same ACLs: equal error codes and names."""

import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink
from support.security.beside_kafka import secured_brokers
from support.security.samples import TOPIC, codes, reported, samples

pytestmark = pytest.mark.peer

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = ("admin", "nobody", "reader", "writer", "owner", "denied", "operator")
LOGIN = " ".join(f'user_{name}="a"' for name in USERS)
COMMON: dict[str, object] = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required {LOGIN};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
TOPICS, GROUPS, CLUSTER, TRANSACTIONS = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(2, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12


def acl(
    user: str, operation: int, kind: int, *, permission: int = ALLOW, name: str = ""
) -> AclCreation:
    if kind == CLUSTER:
        return AclCreation(
            kind, "kafka-cluster", LITERAL, f"User:{user}", "*", operation, permission
        )
    pattern = LITERAL if name else PREFIXED
    return AclCreation(kind, name or "secret", pattern, f"User:{user}", "*", operation, permission)


ACLS = [
    acl("reader", READ, TOPICS, name=TOPIC),
    acl("reader", READ, GROUPS),
    acl("writer", WRITE, TOPICS),
    acl("writer", CREATE, TOPICS),
    acl("writer", WRITE, TRANSACTIONS),
    *(acl("owner", ALL, kind) for kind in (TOPICS, GROUPS, CLUSTER, TRANSACTIONS)),
    *(acl("denied", ALL, kind) for kind in (TOPICS, GROUPS, CLUSTER, TRANSACTIONS)),
    *(
        acl("denied", operation, kind, permission=DENY)
        for operation, kind in (
            (READ, TOPICS),
            (WRITE, TOPICS),
            (DESCRIBE, GROUPS),
            (ALTER, CLUSTER),
            (DESCRIBE_CONFIGS, CLUSTER),
            (WRITE, TRANSACTIONS),
        )
    ),
    acl("operator", DESCRIBE, CLUSTER),
    acl("operator", ALTER_CONFIGS, CLUSTER),
    acl("operator", DESCRIBE_CONFIGS, TOPICS),
    acl("operator", DESCRIBE, TRANSACTIONS),
]


FIRST = (
    "Metadata that creates",
    "InitProducerId",
    "InitProducerId of a transaction",
    "Heartbeat",
    "OffsetCommit",
    "FindCoordinator of share state",
)
NOT_YET = {3, 5, 14, 15, 16, 51}

STATE = "ours believes leaders, which alone ask, that the topic exists; Kafka looks"
EXPLAINED = {
    "InitializeShareGroupState": STATE,
    "ReadShareGroupState": STATE,
    "WriteShareGroupState": STATE,
    "ReadShareGroupStateSummary": STATE,
    "DeleteShareGroupState": STATE,
}
"""Responses that differ on purpose where both brokers allow the request."""


class User(WireLink):
    """A client that has logged in."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(address)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0a".encode()), 1)


class Addresses(NamedTuple):
    ours: str
    kafka: str


def prepare(address: str) -> None:
    with User(address, "admin") as admin:
        new = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        admin.ask(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7)
        response = admin.ask(CreateAclsRequest(creations=ACLS), 3)
        assert isinstance(response, CreateAclsResponse)
        assert [each.error_code for each in response.results] == [0] * len(ACLS)
        deadline = time.monotonic() + 30
        named = {name: (request, version) for name, request, version in samples()}
        for name in ("FindCoordinator", "FindCoordinator of a transaction", *FIRST):
            # The first responses vary while internal topics are created and coordinators load.
            while NOT_YET & {code for _, code in codes(admin.ask(*named[name]))}:
                assert time.monotonic() < deadline, name


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with secured_brokers(COMMON, tmp_path_factory.mktemp("kafka"), as_brokers=True) as brokers:
        found = Addresses(brokers.ours.sasl, brokers.kafka.sasl)
        for each in found:
            prepare(each)
        yield found


Answer = tuple[list[tuple[str, int]], list[str]]


def answer(address: str, user: str, request: Message, version: int) -> Answer:
    with User(address, user) as client:
        try:
            response = client.ask(request, version)
        except Exception as error:  # noqa: BLE001 - a connection that ends is an answer too
            return [(type(error).__name__, 0)], []
        return sorted(codes(response)), sorted(reported(response))


def is_not_yet(found: Answer) -> bool:
    return any(code in NOT_YET or name == "TimeoutError" for name, code in found[0])


@pytest.mark.parametrize("user", USERS)
def test_each_user_gets_the_same_responses_as_from_kafka(addresses: Addresses, user: str) -> None:
    different = {}
    for name, request, version in samples():
        deadline = time.monotonic() + (0 if name in EXPLAINED else 10)
        answers = [answer(address, user, request, version) for address in addresses]
        # The coordinator may still be loading, and on a busy machine a request may time out.
        while answers[0] != answers[1] and any(map(is_not_yet, answers)):
            if time.monotonic() > deadline:
                break
            answers = [answer(address, user, request, version) for address in addresses]
        is_refused = [("error_code", 31) in found for found, _ in answers]
        if name in EXPLAINED and is_refused == [False, False]:
            continue
        if answers[0] != answers[1]:
            different[name] = dict(zip(("ours", "kafka"), answers, strict=True))
    assert different == {}


def answers(link: WireLink, password: str | None, request: Message, version: int) -> list[object]:
    """The error codes of all responses, and how the connection ends."""
    found: list[object] = []
    try:
        if password is not None:
            found += codes(link.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1))
            found += codes(link.ask(SaslAuthenticateRequest(f"\0admin\0{password}".encode()), 1))
        found += codes(link.ask(request, version))
    except (OSError, struct.error):
        found.append("closed")
    return found


@pytest.mark.parametrize("password", [None, "wrong"])
def test_without_a_login_nothing_is_answered_exactly_as_in_kafka(
    addresses: Addresses, password: str | None
) -> None:
    different, served = {}, []
    for name, request, version in samples():
        found = []
        for address in addresses:
            with WireLink(address) as link:
                found.append(answers(link, password, request, version))
        if found[0] != found[1]:
            different[name] = dict(zip(("ours", "kafka"), found, strict=True))
        if found[0][-1] != "closed":
            served.append(name)
    assert different == {}
    assert set(served) <= {"ApiVersions"}
