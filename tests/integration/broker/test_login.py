"""Logins over a socket: the order of messages, refusals, limits, and SCRAM users."""

import re
import socket
import time
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from penstock.client.sasl import Login, exchange
from penstock.errors import ErrorCode
from penstock.security.scram import ScramMechanism, salted
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
DELAY_MS = 150
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": str(DELAY_MS),
    "penstock.http.listen": "127.0.0.1:0",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_alice="secret";',
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


class Client(WireLink):
    """A client on one of the broker's listeners."""

    def __init__(self, broker: EmbeddedBroker, listener: str = "SASL_PLAINTEXT") -> None:
        super().__init__(broker.running.state.listeners[listener])

    def begin(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        response = self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        assert isinstance(response, SaslHandshakeResponse)
        return response

    def token(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        response = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    def log_in(self, name: str = "alice", password: str = "secret") -> SaslAuthenticateResponse:
        self.begin()
        return self.token(f"\0{name}\0{password}".encode())

    def scram(self, login: Login) -> SaslAuthenticateResponse:
        assert self.begin(login.mechanism).error_code == 0
        client = exchange(login, "nonce")
        response = self.token(next(client))
        try:
            while response.error_code == 0:
                response = self.token(client.send(response.auth_bytes))
        except StopIteration:
            pass
        return response

    def send(self, request: Message, version: int) -> None:
        api = next(api for api in APIS.values() if api.request is type(request))
        self._socket.sendall(request_frame(api, version, 1, self.client_id, request))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> bytes:
        return self._stream.read(int.from_bytes(self._stream.read(4), "big"))

    def is_closed(self) -> bool:
        try:
            return self._stream.read(1) == b""
        except ConnectionResetError:
            return True

    def is_served(self) -> bool:
        return isinstance(self.ask(MetadataRequest(topics=[])), MetadataResponse)


def test_a_client_that_logs_in_is_served_under_its_name(broker: EmbeddedBroker) -> None:
    with Client(broker) as client:
        versions = client.ask(
            ApiVersionsRequest(client_software_name="t", client_software_version="1")
        )
        assert isinstance(versions, ApiVersionsResponse)
        assert {17, 36} <= {each.api_key for each in versions.api_keys}
        response = client.log_in()
        assert (response.error_code, response.session_lifetime_ms) == (0, 0)
        assert client.is_served()


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_scram_user_is_created_logs_in_and_is_deleted(
    broker: EmbeddedBroker, mechanism: ScramMechanism
) -> None:
    name = f"zoë, {mechanism.name}"
    salt = b"salt of this user"
    new = ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=4096,
        salt=salt,
        salted_password=salted(mechanism, "geheim", salt, 4096),
    )
    login = Login(mechanism.mechanism, name, "geheim")
    with Client(broker, "PLAINTEXT") as admin:
        assert altered(admin, upsertions=[new]) == {name: ErrorCode.NONE}
        assert described(admin, name) == (0, [CredentialInfo(mechanism=mechanism, iterations=4096)])
        with Client(broker) as client:
            assert client.scram(login).error_code == 0
            assert client.is_served()
        with Client(broker) as client:
            wrong = client.scram(Login(mechanism.mechanism, name, "falsch"))
            assert wrong.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert wrong.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL "
                f"mechanism {mechanism.mechanism}"
            )
            assert client.is_closed()
        gone = ScramCredentialDeletion(name=name, mechanism=mechanism)
        assert altered(admin, deletions=[gone]) == {name: ErrorCode.NONE}
        assert altered(admin, deletions=[gone]) == {name: ErrorCode.RESOURCE_NOT_FOUND}
        assert described(admin, name)[0] == ErrorCode.RESOURCE_NOT_FOUND
        with Client(broker) as client:
            response = client.scram(login)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def altered(
    admin: Client,
    upsertions: list[ScramCredentialUpsertion] | None = None,
    deletions: list[ScramCredentialDeletion] | None = None,
) -> dict[str, int]:
    response = admin.ask(
        AlterUserScramCredentialsRequest(upsertions=upsertions or [], deletions=deletions or [])
    )
    assert isinstance(response, AlterUserScramCredentialsResponse)
    return {each.user: each.error_code for each in response.results}


def described(admin: Client, name: str) -> tuple[int, list[CredentialInfo]]:
    response = admin.ask(DescribeUserScramCredentialsRequest(users=[UserName(name=name)]))
    assert isinstance(response, DescribeUserScramCredentialsResponse)
    (result,) = response.results
    return result.error_code, result.credential_infos


def test_invalid_credentials_are_refused_user_by_user(broker: EmbeddedBroker) -> None:
    def new(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
        return ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"salt",
            salted_password=b"x" * 32,
        )

    with Client(broker, "PLAINTEXT") as admin:
        found = altered(
            admin,
            [
                new(""),
                new("few", iterations=4095),
                new("many", iterations=16385),
                new("other", mechanism=3),
                new("twice"),
                new("twice"),
                new("both"),
                ScramCredentialUpsertion(name="unsalted", mechanism=1, iterations=4096),
                new("good"),
            ],
            [ScramCredentialDeletion(name="both", mechanism=1)],
        )
        assert found == {
            "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "other": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "twice": ErrorCode.DUPLICATE_RESOURCE,
            "both": ErrorCode.DUPLICATE_RESOURCE,
            "unsalted": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "good": ErrorCode.NONE,
        }
        everyone = admin.ask(DescribeUserScramCredentialsRequest(users=None))
        assert isinstance(everyone, DescribeUserScramCredentialsResponse)
        assert [each.user for each in everyone.results] == ["good"]
        twice = admin.ask(
            DescribeUserScramCredentialsRequest(
                users=[UserName(name="good"), UserName(name="good")]
            )
        )
        assert isinstance(twice, DescribeUserScramCredentialsResponse)
        assert [each.error_code for each in twice.results] == [ErrorCode.DUPLICATE_RESOURCE]
        gone = ScramCredentialDeletion(name="good", mechanism=1)
        assert altered(admin, deletions=[gone]) == {"good": ErrorCode.NONE}


def test_nothing_is_served_before_the_login(broker: EmbeddedBroker) -> None:
    for key, api in APIS.items():
        if key in {17, 18}:
            continue
        with Client(broker) as client:
            client.send(api.request(), api.high)
            assert client.is_closed(), api.name


def test_only_authentication_may_follow_the_handshake(broker: EmbeddedBroker) -> None:
    for request, version in ((MetadataRequest(topics=[]), 9), (ApiVersionsRequest(), 0)):
        with Client(broker) as client:
            client.begin()
            client.send(request, version)
            assert client.is_closed()


def test_a_wrong_password_is_answered_late_and_closes_the_connection(
    broker: EmbeddedBroker,
) -> None:
    with Client(broker) as client:
        client.begin()
        began = time.monotonic()
        response = client.token(b"\0alice\0wrong")
        took_s = time.monotonic() - began
        assert took_s >= DELAY_MS / 1000 - 0.01  # timers fire a little early
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == "Authentication failed: Invalid username or password"
        assert client.is_closed()


def test_no_request_is_served_while_a_refusal_is_delayed(broker: EmbeddedBroker) -> None:
    with Client(broker) as client:
        client.begin()
        client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
        client.send(MetadataRequest(topics=[]), 9)
        client.frame()
        assert client.is_closed()


def test_an_unknown_mechanism_is_answered_with_the_offered_ones(
    broker: EmbeddedBroker,
) -> None:
    with Client(broker) as client:
        response = client.begin("GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert client.is_closed()


def test_bare_tokens_follow_a_handshake_of_version_0(broker: EmbeddedBroker) -> None:
    with Client(broker) as client:
        assert client.begin(version=0).error_code == 0
        token = b"\0alice\0secret"
        client.send_bytes(len(token).to_bytes(4, "big") + token)
        assert client.frame() == b""
        assert client.is_served()
    with Client(broker) as client:
        client.begin(version=0)
        token = b"\0alice\0wrong"
        client.send_bytes(len(token).to_bytes(4, "big") + token)
        assert client.is_closed()


def test_large_requests_are_read_only_after_the_login(broker: EmbeddedBroker) -> None:
    with Client(broker) as client:
        client.send_bytes((524_289).to_bytes(4, "big"))
        assert client.is_closed()
    with Client(broker) as client:
        # Before a login 64 KiB are enough for any request: this client id is longer.
        client.client_id = "x" * 32_000
        client.send(ApiVersionsRequest(client_software_name="a" * 40_000), 3)
        assert client.is_closed()
    with Client(broker) as client:
        client.log_in()
        client.send_bytes((1 << 20).to_bytes(4, "big"))
        client.send_bytes(b"\0\x03\0\x09\0\0\0\1\0\x01a\0" + bytes((1 << 20) - 12))
        assert client.frame()[:4] == b"\0\0\0\1"


def test_sasl_on_a_plaintext_listener_is_refused(broker: EmbeddedBroker) -> None:
    with Client(broker, "PLAINTEXT") as client:
        assert client.begin().error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.token(b"x").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_served()


def test_a_login_without_expiry_is_not_repeated(broker: EmbeddedBroker) -> None:
    with Client(broker) as client:
        client.log_in()
        assert client.begin().error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.is_served()


def test_bytes_that_are_no_request_close_the_connection(broker: EmbeddedBroker) -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\1\0", b"\0\0\0\0", bytes(64)):
        with Client(broker) as client:
            client.send_bytes(data)
            client._socket.shutdown(socket.SHUT_WR)
            assert client.is_closed()


def test_logins_are_counted(broker: EmbeddedBroker) -> None:
    def counted() -> dict[str, float]:
        with urlopen(f"http://{broker.http}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        found = (line.rpartition(" ") for line in lines if "authentication_total{" in line)
        return {name.partition("{")[0].rpartition("metrics_")[2]: float(n) for name, _, n in found}

    before = counted()
    for password in ("secret", "wrong"):
        with Client(broker) as client:
            client.log_in(password=password)
    after = counted()
    assert {name: after[name] - before[name] for name in after} == {
        "successful_authentication_total": 1,
        "failed_authentication_total": 1,
        "successful_reauthentication_total": 0,
    }


def test_a_failed_reauthentication_is_counted(broker: EmbeddedBroker) -> None:
    def counted() -> float:
        with urlopen(f"http://{broker.http}/metrics", timeout=10) as page:
            (found,) = re.findall(r"no_reauth_total{.*} (.+)", page.read().decode())
        return float(found)

    before = counted()
    with Client(broker) as client:
        client.log_in()
    assert counted() == before
    with Client(broker) as client:
        client.begin()
        client.token(b"\0alice\0secret", version=0)
    assert counted() == before + 1


def test_a_quota_request_deletes_no_password(broker: EmbeddedBroker) -> None:
    """Both are settings of the user, but deleting a password requires another right."""
    mechanism = ScramMechanism.SCRAM_SHA_512
    key = salted(mechanism, "secret", b"salt", 4096)
    new = ScramCredentialUpsertion("dora", mechanism, 4096, b"salt", key)
    removal = EntryData(
        entity=[EntityData("user", "dora")], ops=[OpData(mechanism.mechanism, remove=True)]
    )
    with Client(broker, "PLAINTEXT") as admin:
        assert altered(admin, upsertions=[new]) == {"dora": ErrorCode.NONE}
        response = admin.ask(AlterClientQuotasRequest(entries=[removal]))
        assert isinstance(response, AlterClientQuotasResponse)
        assert response.entries[0].error_code == ErrorCode.NONE, "as Kafka: it is not a quota"
        assert described(admin, "dora") == (
            0,
            [CredentialInfo(mechanism=mechanism, iterations=4096)],
        )
        gone = [ScramCredentialDeletion(name="dora", mechanism=mechanism)]
        assert altered(admin, deletions=gone) == {"dora": ErrorCode.NONE}
