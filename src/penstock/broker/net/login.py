"""Dispatches the requests of a connection that must log in by SASL (KIP-43, KIP-152, KIP-368).

The client sends ApiVersions, then SaslHandshake, then SaslAuthenticate until the exchange is
complete; after a handshake of version 0 it sends bare tokens without headers. Any other request
closes the connection before it is decoded. After a failed login the response is sent, and the
connection closed, after `connection.failed.authentication.delay.ms`.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from time import perf_counter_ns
from typing import Any, Final

from penstock.broker.context import Peer, Services
from penstock.broker.net.dispatch import Dispatch, Outcome, Request
from penstock.broker.net.rate_limited_log import RateLimitedLog
from penstock.broker.net.routes import Routes
from penstock.broker.net.sasl import SaslListener
from penstock.broker.parked import Parked
from penstock.clock import Clock
from penstock.errors import ErrorCode, ProtocolError
from penstock.security.errors import AuthenticationFailed, InvalidCredentials
from penstock.security.principal import user
from penstock.security.sasl import SaslExchange, SaslStep
from penstock.wire.frame import API_VERSIONS, RequestHeader, read_request_header
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message

_client_log = RateLimitedLog()

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
MAX_OTHER_BYTES: Final = 1 << 16
"""The size limit of a request other than the login's own, from a client that has not logged in."""
REAUTHENTICATION_PAUSE_MS: Final = 1000
"""A client may log in again once a second."""


class LoginState(Enum):
    """The state of a login; the value names the requests expected next."""

    START = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    AUTHENTICATE = "SaslAuthenticate"
    TOKEN = "a token"  # noqa: S105 - no password
    DONE = "any request"
    FAILED = "nothing"


_ALLOWED: Final = {
    LoginState.START: frozenset({API_VERSIONS, SASL_HANDSHAKE}),
    LoginState.HANDSHAKE: frozenset({SASL_HANDSHAKE}),
    LoginState.AUTHENTICATE: frozenset({SASL_AUTHENTICATE}),
    LoginState.FAILED: frozenset[int](),
}


class LoginDispatch(Dispatch):
    """Dispatches a connection's requests once it has logged in."""

    def __init__(
        self,
        routes: Routes,
        services: Services,
        clock: Clock,
        peer: Peer,
        sasl: SaslListener,
    ) -> None:
        super().__init__(routes, services, clock, peer)
        self._sasl = sasl
        self.on_login: Callable[[], None]
        self.on_failure: Callable[[str], None]
        self._state = LoginState.START
        self._exchange: SaslExchange | None = None
        self._mechanism = ""
        self._user: str | None = None
        self._token_id: str | None = None
        """The delegation token by which it logged in."""
        self._began_ms = -REAUTHENTICATION_PAUSE_MS
        self._expires_ms: int | None = None
        self._handshake: RequestHeader | None = None
        self._token = b""
        self._authenticate_version = 0
        """The version of SaslAuthenticate; stays 0 for bare tokens, which have no version."""

    @property
    def has_logged_in(self) -> bool:
        return self._user is not None

    def read(self, frame: memoryview) -> Request:
        if self._state is LoginState.DONE:
            request = super().read(frame)
            if self._expires_ms is not None:
                self._check_expiry(request.header.api.key)
            return request
        if self._state is LoginState.TOKEN:
            assert self._handshake is not None
            self._token = bytes(frame)
            return Request(self._handshake, None, None, perf_counter_ns())
        header, _ = read_request_header(frame)
        key = header.api.key
        if key not in _ALLOWED[self._state]:
            raise ProtocolError(f"{header.api.name} during the login: expected {self._state.value}")
        if key == API_VERSIONS and len(frame) > MAX_OTHER_BYTES:
            raise ProtocolError(f"{header.api.name} of {len(frame)} bytes during the login")
        return super().read(frame)

    def _check_expiry(self, key: int) -> None:
        """A login by a delegation token ends with that, also if it is taken back earlier."""
        assert self._expires_ms is not None
        if key in {SASL_HANDSHAKE, SASL_AUTHENTICATE}:
            return
        if self._clock.monotonic_ms() > self._expires_ms:
            self._sasl.expired += 1
            raise ProtocolError("the login has expired, and the client did not log in again")
        token_id = self._token_id
        if token_id is not None and not self._sasl.token_holds(self._mechanism, token_id):
            self._sasl.expired += 1
            raise ProtocolError("the delegation token of the login has ended")

    def handle(self, request: Request) -> Outcome:
        if self._state is LoginState.TOKEN:
            return self._bare_token()
        message = request.message
        if isinstance(message, SaslHandshakeRequest) and self._may_begin():
            self._count(request)
            return self._begin(message.mechanism, request.header)
        if isinstance(message, SaslAuthenticateRequest) and self._exchange is not None:
            self._count(request)
            self._authenticate_version = request.header.version
            return self._authenticate(message.auth_bytes, request.header.version)
        if self._state is LoginState.START and request.route is not None:
            self._state = LoginState.HANDSHAKE
        return super().handle(request)

    def _count(self, request: Request) -> None:
        if request.route is not None:
            request.route.requests += 1

    def _may_begin(self) -> bool:
        """A connection that has logged in may do so again only if its login expires."""
        if self._state is not LoginState.DONE:
            return True
        since_ms = self._clock.monotonic_ms() - self._began_ms
        return self._expires_ms is not None and since_ms >= REAUTHENTICATION_PAUSE_MS

    def _begin(self, mechanism: str, header: RequestHeader) -> Outcome:
        offered = list(self._sasl.mechanisms)
        if mechanism not in offered:
            return self._fail(
                SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered),
                f"mechanism {mechanism[:40]!r} is not offered",
            )
        if self._user is not None and mechanism != self._mechanism:
            raise ProtocolError(f"logged in by {self._mechanism}, and again by {mechanism}")
        self._mechanism, self._handshake = mechanism, header
        self._began_ms = self._clock.monotonic_ms()
        self._exchange = self._sasl.exchange(mechanism)
        self._state = LoginState.AUTHENTICATE if header.version >= 1 else LoginState.TOKEN
        return SaslHandshakeResponse(ErrorCode.NONE, offered)

    def _authenticate(self, token: bytes, version: int) -> Outcome:
        try:
            step = self._step(token)
        except AuthenticationFailed as error:
            return self._fail(
                SaslAuthenticateResponse(
                    error_code=error.code, error_message=self._error_message(error), auth_bytes=b""
                ),
                error.because,
            )
        lifetime_ms = self._complete(step)
        return SaslAuthenticateResponse(
            error_message=None,
            auth_bytes=step.answer,
            session_lifetime_ms=lifetime_ms if version >= 1 else 0,
        )

    def _bare_token(self) -> Outcome:
        try:
            step = self._step(self._token)
        except AuthenticationFailed as error:
            # A bare token has no response to carry the error.
            return self._fail(None, error.because)
        self._complete(step)
        return bytearray(len(step.answer).to_bytes(4, "big") + step.answer)

    def _step(self, token: bytes) -> SaslStep:
        assert self._exchange is not None
        step = self._exchange.step(token)
        if self._user is not None and step.user not in {None, self._user}:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{user(self._user)}: {user(step.user or '')}"
            )
        return step

    def _error_message(self, error: AuthenticationFailed) -> str:
        if not isinstance(error, InvalidCredentials):
            return str(error)
        action = "authentication" if self._user is None else "re-authentication"
        return (
            f"Authentication failed during {action} due to invalid credentials with SASL "
            f"mechanism {self._mechanism}"
        )

    def _complete(self, step: SaslStep) -> int:
        """Finish the login if the client has proved its identity; returns the session lifetime."""
        if step.user is None:
            return 0
        self._state, self._exchange = LoginState.DONE, None
        self._token_id = step.token_id
        self.peer.by_token = step.token_id is not None
        lifetime_ms = self._lifetime_ms(step.expires_ms)
        self._expires_ms = None
        if lifetime_ms is not None:
            self._expires_ms = self._clock.monotonic_ms() + lifetime_ms
        lifetime_ms = lifetime_ms or 0
        if self._user is not None:
            self._sasl.reauthentications += 1
            return lifetime_ms
        self._user = step.user
        self._sasl.successes += 1
        self._sasl.without_reauthentication += self._authenticate_version == 0
        self.peer.principal = user(step.user)
        self.on_login()
        return lifetime_ms

    def _lifetime_ms(self, expires_ms: int | None) -> int | None:
        """How long the login lasts: until the credential expires, but at most as long as the
        listener allows; None: as long as the connection.
        """
        limit_ms = self._sasl.lifetime_ms(self._mechanism)
        if expires_ms is None:
            return limit_ms if limit_ms > 0 else None
        left_ms = max(0, expires_ms - self._clock.now_ms())
        return min(left_ms, limit_ms) if limit_ms > 0 else left_ms

    def _fail(self, response: Message | None, reason: str) -> Outcome:
        self._state, self._exchange = LoginState.FAILED, None
        self._sasl.failures += 1
        _client_log.warn(
            self._clock.monotonic_ms() / 1000, "failed login of %s: %s", self.peer, reason
        )
        network = self._services.config.network

        def answered() -> Any:
            """The response, or None for a bare token: the connection is then closed without one."""
            loop = asyncio.get_running_loop()
            loop.call_soon(self.on_failure, "the login failed")  # after the response is sent
            return response

        # A timer, not a task: failed logins are unlimited, so each must be cheap.
        wait_ms = network.connection_failed_authentication_delay_ms
        return Parked((), wait_ms, lambda: None, answered)
