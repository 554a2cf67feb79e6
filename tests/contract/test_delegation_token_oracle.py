"""Requests about delegation tokens, compared with a real Kafka that has the same settings."""

import time
from collections.abc import Iterator

import pytest

from penstock.wire.messages import create_delegation_token as creating
from penstock.wire.messages import describe_delegation_token as describing
from penstock.wire.messages import expire_delegation_token as expiring
from penstock.wire.messages import renew_delegation_token as renewing
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.brokers.wire_link import WireLink
from support.security.beside_kafka import SecuredBroker, SecuredBrokers, secured_brokers

pytestmark = pytest.mark.peer

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = ("admin", "alice", "bob", "carol", "maker", "viewer")
LOGIN = " ".join(f'user_{name}="a"' for name in USERS)
COMMON: dict[str, object] = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required {LOGIN};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": "the same on both",
}
USER_RESOURCE, LITERAL, ALLOW, CREATE_TOKENS, DESCRIBE_TOKENS = 7, 3, 3, 13, 14


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    with secured_brokers(COMMON, tmp_path_factory.mktemp("kafka")) as found:
        rights = [("maker", CREATE_TOKENS), ("viewer", DESCRIBE_TOKENS)]
        acls = [
            AclCreation(USER_RESOURCE, "User:alice", LITERAL, f"User:{who}", "*", what, ALLOW)
            for who, what in rights
        ]
        for each in found:
            with link(each.sasl, "admin") as admin:
                admin.ask(CreateAclsRequest(acls), 3)
        yield found


def link(address: str, name: str) -> WireLink:
    found = WireLink(address)
    found.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    found.ask(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0a".encode()), 1)
    return found


def story(broker: SecuredBroker) -> Iterator[tuple[str, object]]:
    """A sequence of requests and the broker's responses, without parts that vary from run
    to run.
    """

    def create(
        who: str, owner: str | None = None, renewer: str = "User:bob", life_ms: int = -1
    ) -> creating.CreateDelegationTokenResponse:
        kind, name = owner.split(":") if owner else (None, None)
        request = creating.CreateDelegationTokenRequest(
            kind, name, [creating.CreatableRenewers(*renewer.split(":"))], life_ms
        )
        with link(broker.sasl, who) as client:
            made = client.ask(request)
            assert isinstance(made, creating.CreateDelegationTokenResponse)
            deadline = time.monotonic() + 10
            while not made.error_code and made.token_id not in ids():  # Kafka lists it later
                assert time.monotonic() < deadline
            return made

    def ids() -> set[str]:
        with link(broker.sasl, "admin") as client:
            found = client.ask(describing.DescribeDelegationTokenRequest(None))
            assert isinstance(found, describing.DescribeDelegationTokenResponse)
            return {each.token_id for each in found.tokens}

    def gone(token_id: str) -> None:
        deadline = time.monotonic() + 10
        while token_id in ids():
            assert time.monotonic() < deadline

    def renew(who: str, hmac: bytes, period_ms: int) -> tuple[int, int]:
        with link(broker.sasl, who) as client:
            found = client.ask(renewing.RenewDelegationTokenRequest(hmac, period_ms))
            assert isinstance(found, renewing.RenewDelegationTokenResponse)
            # The expiry time of an error response means nothing: Kafka sends -1 in some and 0 in
            # others.
            return found.error_code, 0 if found.error_code else found.expiry_timestamp_ms

    def expire(who: str, hmac: bytes, period_ms: int) -> tuple[int, int]:
        with link(broker.sasl, who) as client:
            found = client.ask(expiring.ExpireDelegationTokenRequest(hmac, period_ms))
            assert isinstance(found, expiring.ExpireDelegationTokenResponse)
            # The expiry time of an error response means nothing: Kafka sends -1 in some and 0 in
            # others.
            return found.error_code, 0 if found.error_code else found.expiry_timestamp_ms

    def describe(
        who: str, *owners: str, everyone: bool = False
    ) -> list[tuple[str, str, list[str]]]:
        named = [describing.DescribeDelegationTokenOwner(*each.split(":")) for each in owners]
        request = describing.DescribeDelegationTokenRequest(None if everyone else named)
        with link(broker.sasl, who) as client:
            found = client.ask(request)
            assert isinstance(found, describing.DescribeDelegationTokenResponse)
            assert found.error_code == 0
            return sorted(
                (
                    each.principal_name,
                    each.token_requester_principal_name,
                    [one.principal_name for one in each.renewers],
                )
                for each in found.tokens
            )

    with WireLink(broker.plain) as stranger:
        for request in (
            creating.CreateDelegationTokenRequest(None, None, [], -1),
            renewing.RenewDelegationTokenRequest(b"x", -1),
            expiring.ExpireDelegationTokenRequest(b"x", -1),
            describing.DescribeDelegationTokenRequest(None),
        ):
            yield f"{type(request).__name__} on PLAINTEXT", stranger.ask(request)
    for name, made in (
        ("for another", create("alice", "User:carol")),
        ("for a renewer that is no user", create("alice", renewer="Group:bob")),
    ):
        yield f"create {name}", made
    # Left out: Kafka creates a token for Group:bob, which logs in as User:bob. Penstock refuses.
    own = create("alice")
    yield "its life", (own.max_timestamp_ms - own.issue_timestamp_ms, own.error_code)
    yield "its end", own.expiry_timestamp_ms - own.issue_timestamp_ms
    yield "sizes", (len(own.token_id), len(own.hmac))
    short = create("alice", life_ms=60_000)
    yield "a short life", short.max_timestamp_ms - short.issue_timestamp_ms
    yield "an end before", short.expiry_timestamp_ms - short.issue_timestamp_ms
    given = create("maker", "User:alice", renewer="User:carol")
    yield "made for alice", (given.error_code, given.principal_name)
    yield "by maker", given.token_requester_principal_name
    yield "all of alice", describe("alice", everyone=True)
    yield "all of bob", describe("bob", everyone=True)
    yield "all of carol", describe("carol", everyone=True)
    yield "all of maker", describe("maker", everyone=True)
    yield "all of viewer", describe("viewer", everyone=True)
    yield "all of admin", describe("admin", everyone=True)
    yield "none", describe("alice")
    yield "those of bob", describe("admin", "User:bob")
    yield "those of nobody", describe("admin", "User:nobody")
    yield "renew unknown", renew("alice", b"unknown", -1)
    yield "renew by a stranger", renew("viewer", own.hmac, -1)
    yield "renew beyond", renew("bob", short.hmac, 10**9)[1] == short.max_timestamp_ms
    yield "renew by a super user", renew("admin", own.hmac, -1)
    yield "expire unknown", expire("alice", b"unknown", -1)
    yield "expire by a stranger", expire("viewer", own.hmac, -1)
    yield "expire soon", expire("bob", short.hmac, 0)[0]
    yield "expire at once", expire("alice", own.hmac, -1)[0]
    gone(own.token_id)
    yield "expire again", expire("alice", own.hmac, -1)
    yield "left", describe("admin", "User:maker")
    expire("alice", given.hmac, -1)
    expire("alice", short.hmac, -1)


def test_a_sequence_of_token_requests_is_answered_as_by_kafka(brokers: SecuredBrokers) -> None:
    ours, kafka = (dict(story(each)) for each in brokers)
    different = {name: (ours[name], kafka[name]) for name in ours if ours[name] != kafka[name]}
    assert different == {}
