"""Logins that expire (KIP-368): a client logs in again in time, as the same user, or is
disconnected.
"""

import asyncio
from random import Random
from typing import cast

import pytest

from penstock.broker.context import Peer, Services
from penstock.broker.net.large_requests import LARGE_BYTES
from penstock.broker.net.login import REAUTHENTICATION_PAUSE_MS, LoginDispatch
from penstock.broker.net.routes import Routes
from penstock.broker.net.sasl import SaslListener
from penstock.broker.parked import Parked
from penstock.client.sasl import Login, exchange, next_message
from penstock.config.listener import SecurityProtocol
from penstock.config.listener_security import ListenerSecurity
from penstock.errors import ErrorCode, ProtocolError
from penstock.security.delegation_token import DelegationToken
from penstock.security.principal import ANONYMOUS, user
from penstock.security.scram import MIN_ITERATIONS, ScramMechanism, credential, salted
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.metadata import MetadataRequest
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message
from support.brokers.few_services import FewServices

LIFE_MS = 60_000
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
TEXTS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.s.plain.sasl.jaas.config": (
        f'{PLAIN} required user_alice="secret" user_bob="other";'
    ),
    "listener.name.s.plain.connections.max.reauth.ms": str(LIFE_MS),
}


class Clock:
    now = 5_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


class Network:
    connection_failed_authentication_delay_ms = 0


class Config:
    network = Network()


class LoginServices(FewServices):
    config = Config()


class Client:
    """A connection's dispatch with an adjustable clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        security = ListenerSecurity("S", SecurityProtocol.SASL_PLAINTEXT, TEXTS)
        self.sasl = SaslListener(security, self.clock, Random(1))
        self.dispatch = LoginDispatch(
            Routes({17: refused_handshake, 36: refused_token, 3: refused_token}),
            cast("Services", LoginServices()),
            self.clock,
            Peer("S", "host", 1),
            self.sasl,
        )
        self.logged_in, self.closed = 0, list[str]()
        self.dispatch.on_login = self._on_login
        self.dispatch.on_failure = self.closed.append

    def _on_login(self) -> None:
        self.logged_in += 1

    def send(self, request: Message, version: int) -> object:
        api = next(api for api in APIS.values() if api.request is type(request))
        frame = memoryview(request_frame(api, version, 1, None, request))[4:]
        read = self.dispatch.read(frame)
        if isinstance(request, MetadataRequest):
            return None  # accepted; there is no handler to answer it
        outcome = self.dispatch.handle(read)
        return expired(outcome) if isinstance(outcome, Parked) else outcome

    def begin(self, mechanism: str = "PLAIN") -> int:
        response = self.send(SaslHandshakeRequest(mechanism=mechanism), 1)
        assert isinstance(response, SaslHandshakeResponse)
        return response.error_code

    def log_in(self, name: str = "alice", password: str = "secret") -> SaslAuthenticateResponse:
        assert self.begin() == 0
        token = f"\0{name}\0{password}".encode()
        response = self.send(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    def scram(self, login: Login) -> SaslAuthenticateResponse:
        assert self.begin(login.mechanism) == 0
        messages = exchange(login, "nonce")
        message: bytes | None = next(messages)
        while True:
            response = self.send(SaslAuthenticateRequest(auth_bytes=message or b""), 2)
            assert isinstance(response, SaslAuthenticateResponse)
            message = next_message(messages, response.auth_bytes)
            if message is None:
                return response

    def asks(self) -> None:
        self.send(MetadataRequest(topics=[]), 9)


def expired(outcome: Parked[object]) -> object:
    async def answered() -> object:
        response = outcome.expire()
        await asyncio.sleep(0)  # the connection closes after this answer
        return response

    return asyncio.run(answered())


def refused_handshake(_request: Message, _ctx: object) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def refused_token(_request: Message, _ctx: object) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def test_a_login_returns_its_lifetime_and_sets_the_principal() -> None:
    client = Client()
    assert client.dispatch.peer.principal == ANONYMOUS
    assert client.log_in().session_lifetime_ms == LIFE_MS
    assert client.dispatch.peer.principal == user("alice")
    assert (client.logged_in, client.sasl.successes, client.sasl.failures) == (1, 1, 0)


def test_a_client_that_logs_in_again_is_still_served() -> None:
    client = Client()
    client.log_in()
    for _ in range(3):
        client.clock.now += LIFE_MS
        client.asks()
        client.clock.now += 1  # too late for anything but a login
        assert client.log_in().session_lifetime_ms == LIFE_MS
    client.asks()
    assert (client.logged_in, client.sasl.reauthentications) == (1, 3)


def test_a_client_that_does_not_log_in_again_is_disconnected() -> None:
    client = Client()
    client.log_in()
    client.clock.now += LIFE_MS + 1
    with pytest.raises(ProtocolError, match="the login has expired"):
        client.asks()
    assert client.sasl.expired == 1


def test_logging_in_again_too_often_is_refused() -> None:
    client = Client()
    client.log_in()
    client.clock.now += REAUTHENTICATION_PAUSE_MS - 1
    assert client.begin() == ErrorCode.ILLEGAL_SASL_STATE
    client.asks()
    client.clock.now += 1
    assert client.begin() == ErrorCode.NONE


def test_a_login_without_expiry_replaces_one_with_expiry() -> None:
    """A client starts with a delegation token and continues with its password."""
    mechanism, client = ScramMechanism.SCRAM_SHA_256, Client()
    key = salted(mechanism, "secret", b"salt", MIN_ITERATIONS)
    known = credential(mechanism, key, b"salt", MIN_ITERATIONS)
    alice, ends_ms = user("alice"), client.clock.now + LIFE_MS
    token = DelegationToken("id", alice, alice, (), 0, ends_ms, ends_ms)
    client.sasl.find_token = lambda _mechanism, _token_id: (known, token)
    client.sasl.find_scram_user = lambda _mechanism, _name: known
    by_token = Login(mechanism.mechanism, "id", "secret", is_token=True)
    assert client.scram(by_token).session_lifetime_ms == LIFE_MS
    client.clock.now += REAUTHENTICATION_PAUSE_MS
    assert client.scram(Login(mechanism.mechanism, "alice", "secret")).session_lifetime_ms == 0
    client.clock.now += LIFE_MS
    client.asks()


def test_a_login_ends_when_its_delegation_token_is_taken_back() -> None:
    mechanism, client = ScramMechanism.SCRAM_SHA_256, Client()
    key = salted(mechanism, "secret", b"salt", MIN_ITERATIONS)
    alice, ends_ms = user("alice"), client.clock.now + LIFE_MS
    token = DelegationToken("id", alice, alice, (), 0, ends_ms, ends_ms)
    tokens = {"id": (credential(mechanism, key, b"salt", MIN_ITERATIONS), token)}
    client.sasl.find_token = lambda _mechanism, token_id: tokens.get(token_id)
    client.scram(Login(mechanism.mechanism, "id", "secret", is_token=True))
    client.asks()
    tokens.clear()
    with pytest.raises(ProtocolError, match="token of the login has ended"):
        client.asks()


def test_a_long_login_token_takes_no_slot_of_large_requests() -> None:
    """The answer to a failed login is delayed: unauthenticated clients would hold those slots."""
    client = Client()
    client.begin()
    api, token = APIS[36], SaslAuthenticateRequest(auth_bytes=b"x" * (LARGE_BYTES + 1))
    frame = memoryview(request_frame(api, 2, 1, None, token))[4:]
    assert client.dispatch.read(frame).message == token


def test_nothing_else_is_served_between_the_messages_of_a_login() -> None:
    client = Client()
    client.log_in()
    client.clock.now += REAUTHENTICATION_PAUSE_MS
    client.begin()
    with pytest.raises(ProtocolError, match="Metadata during the login"):
        client.asks()


def test_a_client_cannot_become_another_user() -> None:
    client = Client()
    client.log_in()
    client.clock.now += REAUTHENTICATION_PAUSE_MS
    response = client.log_in("bob", "other")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == (
        "Cannot change principals during re-authentication from User:alice: User:bob"
    )
    assert client.dispatch.peer.principal == user("alice")
    assert client.closed == ["the login failed"]


def test_a_client_cannot_change_its_mechanism() -> None:
    client = Client()
    client.log_in()
    client.clock.now += REAUTHENTICATION_PAUSE_MS
    with pytest.raises(ProtocolError, match="logged in by PLAIN, and again by SCRAM-SHA-256"):
        client.begin("SCRAM-SHA-256")


def test_a_connection_after_a_failed_login_is_unusable() -> None:
    client = Client()
    assert client.log_in(password="wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.closed == ["the login failed"]
    for request in (SaslHandshakeRequest(mechanism="PLAIN"), MetadataRequest(topics=[])):
        with pytest.raises(ProtocolError, match="expected nothing"):
            client.send(request, 1)
    assert client.dispatch.peer.principal == ANONYMOUS
