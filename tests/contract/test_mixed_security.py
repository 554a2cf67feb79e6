"""ACLs, users and quotas in a cluster of Kafka 3.9 and ours: set on one side, they apply on
both.
"""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from differential.cases.quotas import alter, entry
from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import free_ports
from peers.zookeeper import ZooKeeper
from penstock.client.sasl import Login, exchange
from penstock.errors import ErrorCode
from penstock.security.scram import ScramMechanism, salted
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest
from penstock.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from penstock.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.brokers.wire_link import WireLink
from support.security.samples import codes

pytestmark = pytest.mark.peer

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISM = ScramMechanism.SCRAM_SHA_256
TOPIC, CLUSTER, LITERAL, PREFIXED, DENY, ALLOW = 2, 4, 3, 4, 2, 3
ANY, DESCRIBE, IDEMPOTENT_WRITE = 1, 8, 12
WITHIN_S = 1.0
COMMON = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "delegation.token.secret.key": "the same on both",
    "zookeeper.session.timeout.ms": "6000",
}


class Side(NamedTuple):
    """A broker: its address for super users, and its address for users who log in."""

    plain: str
    sasl: str


class Mixed(NamedTuple):
    kafka: Side
    ours: Side


@pytest.fixture(scope="module")
def mixed() -> Iterator[Mixed]:
    sasl_ports = free_ports(2)
    with ZooKeeper() as zookeeper:
        theirs: dict[str, object] = dict(COMMON)
        kafka = KafkaCluster(1, zookeeper=zookeeper.connect, settings=theirs)
        with_sasl = f"SASL_PLAINTEXT://127.0.0.1:{sasl_ports[0]}"
        theirs["listeners"] = f"PLAINTEXT://127.0.0.1:{kafka.port(0)},{with_sasl}"
        own: dict[str, object] = dict(COMMON)
        ours = PenstockCluster(zookeeper.connect, 1, settings=own, first=1)
        with_sasl = f"SASL_PLAINTEXT://127.0.0.1:{sasl_ports[1]}"
        own["listeners"] = f"PLAINTEXT://{ours.addresses[0]},{with_sasl}"
        with kafka, ours:
            yield Mixed(
                Side(kafka.bootstrap, f"127.0.0.1:{sasl_ports[0]}"),
                Side(ours.bootstrap, f"127.0.0.1:{sasl_ports[1]}"),
            )


def logs_in(address: str, name: str, password: str, *, is_token: bool = False) -> WireLink | None:
    """A connection that is logged in as the user; None if the login is refused."""
    link = WireLink(address)
    link.ask(SaslHandshakeRequest(mechanism=MECHANISM.mechanism), 1)
    client = exchange(Login(MECHANISM.mechanism, name, password, is_token=is_token), "nonce")
    token = next(client)
    while True:
        response = link.ask(SaslAuthenticateRequest(auth_bytes=token), 1)
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code:
            link.__exit__(None, None, None)
            return None
        try:
            token = client.send(response.auth_bytes)
        except StopIteration:
            return link


def soon(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it does not hold within a second"


def alter_user(address: str, name: str, password: str | None) -> None:
    if password is None:
        request = AlterUserScramCredentialsRequest([ScramCredentialDeletion(name, MECHANISM)])
    else:
        salt = b"some salt"
        key = salted(MECHANISM, password, salt, 4096)
        new = ScramCredentialUpsertion(name, MECHANISM, 4096, salt, key)
        request = AlterUserScramCredentialsRequest(upsertions=[new])
    with WireLink(address) as admin:
        assert {code for _, code in codes(admin.ask(request, 0))} == {0}


def is_user(address: str, name: str, password: str) -> bool:
    link = logs_in(address, name, password)
    if link is None:
        return False
    link.__exit__(None, None, None)
    return True


@pytest.mark.parametrize("written_by", ["kafka", "ours"])
def test_a_user_created_on_one_side_logs_in_on_both(mixed: Mixed, written_by: str) -> None:
    side: Side = getattr(mixed, written_by)
    name = f"user of {written_by}"
    alter_user(side.plain, name, "first")
    for each in mixed:
        soon(lambda at=each.sasl: is_user(at, name, "first"))  # type: ignore[misc]
    alter_user(side.plain, name, "second")
    for each in mixed:
        soon(lambda at=each.sasl: is_user(at, name, "second"))  # type: ignore[misc]
        assert not is_user(each.sasl, name, "first")
    alter_user(side.plain, name, None)
    for each in mixed:
        soon(lambda at=each.sasl: not is_user(at, name, "second"))  # type: ignore[misc]


@pytest.mark.parametrize("written_by", ["kafka", "ours"])
def test_a_delegation_token_created_on_one_side_logs_in_on_both(
    mixed: Mixed, written_by: str
) -> None:
    side: Side = getattr(mixed, written_by)
    name = f"maker of {written_by}, and ~"
    alter_user(side.plain, name, "secret")
    soon(lambda: is_user(side.sasl, name, "secret"))
    maker = logs_in(side.sasl, name, "secret")
    assert maker is not None
    with maker:
        renewer = CreatableRenewers("User", "a, b")
        made = maker.ask(CreateDelegationTokenRequest(None, None, [renewer], -1))
        assert isinstance(made, CreateDelegationTokenResponse)
        password = b64encode(made.hmac).decode()

        def is_known(address: str) -> bool:
            link = logs_in(address, made.token_id, password, is_token=True)
            if link is None:
                return False
            link.__exit__(None, None, None)
            return True

        for each in mixed:
            soon(lambda at=each.sasl: is_known(at))  # type: ignore[misc]
            with logs_in(each.sasl, name, "secret") or WireLink(each.plain) as owner:
                seen = owner.ask(DescribeDelegationTokenRequest(None))
                assert isinstance(seen, DescribeDelegationTokenResponse)
                (token,) = seen.tokens
                assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
                assert (token.principal_name, token.token_requester_principal_name) == (name, name)
                assert [one.principal_name for one in token.renewers] == ["a, b"]
        maker.ask(ExpireDelegationTokenRequest(made.hmac, -1))
    for each in mixed:
        soon(lambda at=each.sasl: not is_known(at))  # type: ignore[misc]
    alter_user(side.plain, name, None)


def alter_acls(address: str, *creations: AclCreation, deletes: str | None = None) -> None:
    with WireLink(address) as admin:
        if creations:
            assert {c for _, c in codes(admin.ask(CreateAclsRequest(list(creations)), 3))} == {0}
        if deletes is not None:
            gone = DeleteAclsFilter(ANY, None, ANY, deletes, None, ANY, ANY)
            assert {c for _, c in codes(admin.ask(DeleteAclsRequest([gone]), 3))} == {0}


@pytest.mark.parametrize("written_by", ["kafka", "ours"])
def test_an_acl_created_on_one_side_applies_on_both(mixed: Mixed, written_by: str) -> None:
    side: Side = getattr(mixed, written_by)
    name = f"reader-{written_by}"
    alter_user(side.plain, name, "a")
    links = []
    for each in mixed:
        soon(lambda at=each.sasl: is_user(at, name, "a"))  # type: ignore[misc]
        link = logs_in(each.sasl, name, "a")
        assert link is not None
        links.append(link)

    def sees(link: WireLink, topic: str) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        found = {code for _, code in codes(link.ask(request, 9))} - {0, -(2**31)}
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED not in found

    def may_write(link: WireLink) -> bool:
        found = codes(link.ask(InitProducerIdRequest(transactional_id=None), 3))
        return ("error_code", ErrorCode.CLUSTER_AUTHORIZATION_FAILED) not in found

    user = f"User:{name}"
    for link in links:
        assert not sees(link, "payments-eu")
        assert not may_write(link)
    alter_acls(
        side.plain,
        AclCreation(TOPIC, "payments", PREFIXED, user, "*", DESCRIBE, ALLOW),
        AclCreation(TOPIC, "payments-us", LITERAL, user, "*", DESCRIBE, DENY),
        AclCreation(CLUSTER, "kafka-cluster", LITERAL, user, "*", IDEMPOTENT_WRITE, ALLOW),
    )
    for link in links:
        soon(lambda at=link: sees(at, "payments-eu"))  # type: ignore[misc]
        soon(lambda at=link: not sees(at, "payments-us"))  # type: ignore[misc]
        soon(lambda at=link: may_write(at))  # type: ignore[misc]
    alter_acls(side.plain, deletes=user)
    for link in links:
        soon(lambda at=link: not sees(at, "payments-eu"))  # type: ignore[misc]
        link.__exit__(None, None, None)


@pytest.mark.parametrize("written_by", ["kafka", "ours"])
def test_a_quota_set_on_one_side_applies_on_both(mixed: Mixed, written_by: str) -> None:
    side: Side = getattr(mixed, written_by)
    name = f"app of {written_by}"

    def set_quota(value: float | None) -> None:
        request = alter(entry({"client-id": name}, ("request_percentage", value)))
        with WireLink(side.plain) as admin:
            assert {code for _, code in codes(admin.ask(request, 1))} == {0}

    def is_held_back(address: str) -> bool:
        with WireLink(address) as link:
            link.client_id = name
            response: Any = link.ask(MetadataRequest(topics=[]), 9)
            return bool(response.throttle_time_ms > 0)

    set_quota(0.000_001)
    for each in mixed:
        soon(lambda at=each.plain: is_held_back(at))  # type: ignore[misc]
    set_quota(None)
    for each in mixed:
        soon(lambda at=each.plain: not is_held_back(at))  # type: ignore[misc]
