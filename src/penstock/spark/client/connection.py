"""One blocking connection to a broker: requests are pipelined, responses come in the same order.

Spark's workers are plain processes without an event loop, and their responses are large. So
requests are sent ahead of time, and records are views of the buffer that the socket filled.
"""

import math
import secrets
import socket
import ssl
from collections import deque
from contextlib import suppress
from struct import Struct
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar, cast

from penstock.client import versions
from penstock.client.address import Address
from penstock.client.errors import ConnectionFailed, RequestTimedOut, check
from penstock.client.sasl import (
    RENEWED_SHARE,
    ClientAuthenticationFailed,
    Login,
    exchange,
    next_message,
)
from penstock.client.versions import api_versions_request
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.spark.client.settings import ClientSettings
from penstock.wire.apis import APIS, Api, api_of
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decoder
from penstock.wire.frame import API_VERSIONS
from penstock.wire.messages.api_versions import ApiVersionsResponse
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

MAX_RESPONSE_BYTES = 1 << 30
Writable: TypeAlias = bytearray | memoryview
_SIZE = Struct(">i")
_SASL_HANDSHAKE = 17


class SentRequest(Generic[R]):
    """A request that was sent; `BlockingConnection.receive` gives its response."""

    __slots__ = ("api", "correlation_id", "expected", "response", "response_type", "version")

    def __init__(
        self, api: Api, version: int, correlation_id: int, response_type: type[R], *, expected: bool
    ) -> None:
        self.api, self.version, self.correlation_id = api, version, correlation_id
        self.response_type, self.expected = response_type, expected
        self.response: R | None = None


def connect(address: Address, settings: ClientSettings) -> "BlockingConnection":
    """Connect, negotiate API versions and, if the settings say so, authenticate."""
    timeout_ms = settings.connect_timeout_ms
    try:
        link = _opened(address, settings)
    except TimeoutError:
        raise ConnectionFailed(f"{address} did not answer within {timeout_ms} ms") from None
    except ssl.SSLError as error:
        why = _tls_cause(error)
        raise ClientAuthenticationFailed(f"TLS with {address} failed: {why}") from None
    except OSError as error:
        raise ConnectionFailed(f"cannot connect to {address}: {error.strerror or error}") from None
    connection = BlockingConnection(address, link, settings)
    try:
        connection.negotiate()
        if settings.security.login is not None:
            connection.log_in(settings.security.login)
    except BaseException:
        connection.close()
        raise
    return connection


class BlockingConnection:
    """Created by `connect`. One thread uses it at a time; any thread may `close` it.

    When it breaks, every request in flight fails with the same error.
    """

    def __init__(self, address: Address, link: socket.socket, settings: ClientSettings) -> None:
        self.address = address
        self.versions = {API_VERSIONS: versions.FIRST_VERSION}
        """The version used for each API, by its key."""
        self._link, self._settings = link, settings
        self._in_flight: deque[SentRequest[Any]] = deque()
        self._correlation_id = 0
        self._broken: KafkaError | None = None
        self._renew_at = math.inf
        """When to log in again (KIP-368), by the system's monotonic clock."""

    @property
    def is_open(self) -> bool:
        return self._broken is None

    @property
    def unanswered(self) -> int:
        """The number of requests in flight."""
        return len(self._in_flight)

    def send(
        self, request: Message, response_type: type[R], *, expected: bool = True
    ) -> SentRequest[R]:
        """Send now, receive later. `expected` is False for a request without response (acks=0)."""
        if self._broken is not None:
            raise self._broken
        if monotonic() >= self._renew_at and self._settings.security.login is not None:
            self._renew_login(self._settings.security.login)
        api = api_of(type(request))
        assert response_type.__name__ == f"{api.name}Response", (
            f"{response_type.__name__} does not answer {api.name}"
        )
        version = versions.chosen(self.versions, api, str(self.address))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = request_frame(api, version, self._correlation_id, self._settings.client_id, request)
        sent = SentRequest(api, version, self._correlation_id, response_type, expected=expected)
        try:
            self._link.settimeout(self._settings.request_timeout_ms / 1000)
            self._link.sendall(frame)
        except TimeoutError:
            raise self._break(RequestTimedOut(f"{self.address} does not take {api.name}")) from None
        except OSError as error:
            raise self._break(self._lost(error)) from None
        if expected:
            self._in_flight.append(sent)
        return sent

    def receive(
        self, sent: SentRequest[R], *, timeout_ms: int | None = None, into: Writable | None = None
    ) -> R:
        """The response; earlier responses are stored in their own `SentRequest`.

        Its bytes go to `into` if they fit: then records in the response are views of that buffer,
        valid until it is used again.
        """
        assert sent.expected, "this request has no response"
        limit_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline = monotonic() + limit_ms / 1000
        while sent.response is None:
            if self._broken is not None:
                raise self._broken
            assert self._in_flight, "the request was sent on another connection"
            oldest = self._in_flight[0]
            try:
                frame = self._frame(deadline, into if oldest is sent else None)
                oldest.response = _decoded(oldest, frame)
            except TimeoutError:
                late = f"{self.address} did not answer {oldest.api.name} within {limit_ms} ms"
                raise self._break(RequestTimedOut(late)) from None
            except OSError as error:
                raise self._break(self._lost(error)) from None
            except ProtocolError as error:
                broke = ConnectionFailed(f"{self.address} broke the protocol: {error}")
                raise self._break(broke) from None
            self._in_flight.popleft()
        return sent.response

    def call(self, request: Message, response_type: type[R], *, timeout_ms: int | None = None) -> R:
        """Send and wait for the response; a timeout closes the connection."""
        return self.receive(self.send(request, response_type), timeout_ms=timeout_ms)

    def negotiate(self) -> None:
        """Request the broker's API versions; again if it does not support the first version."""
        limit_ms = self._settings.connect_timeout_ms
        response = self.call(api_versions_request(), ApiVersionsResponse, timeout_ms=limit_ms)
        if response.error_code != ErrorCode.NONE:
            again = versions.second_version(response, str(self.address))
            self.versions = {API_VERSIONS: again}
            response = self.call(api_versions_request(), ApiVersionsResponse, timeout_ms=limit_ms)
            check(response.error_code, f"ApiVersions of {self.address}")
        self.versions = versions.common(response.api_keys)

    def log_in(self, login: Login) -> None:
        """Log in, before any other request or again on the same connection (KIP-368)."""
        self._renew_at = math.inf
        about = f"{login} by {login.mechanism} at {self.address}"
        if self.versions.get(_SASL_HANDSHAKE, 0) < 1:
            raise ClientAuthenticationFailed(f"{about}: the broker's listener offers no SASL")
        offer = self.call(SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse)
        check(offer.error_code, about, f"offered: {', '.join(offer.mechanisms) or 'nothing'}")
        shown = "" if login.token is None else login.token.read()
        messages = exchange(login, secrets.token_urlsafe(24), shown)
        message = next(messages)
        while True:
            response = self.call(
                SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse
            )
            check(response.error_code, about, response.error_message)
            following = next_message(messages, bytes(response.auth_bytes))
            if following is None:
                break
            message = following
        if response.session_lifetime_ms > 0:
            self._renew_at = monotonic() + response.session_lifetime_ms / 1000 * RENEWED_SHARE

    def _renew_login(self, login: Login) -> None:
        try:
            self.log_in(login)
        except BaseException as error:
            # After a failed login the connection must not be used: the server did not prove its
            # identity, or refuses all further requests.
            failed = error if isinstance(error, KafkaError) else None
            self._break(failed or ConnectionFailed(f"no {login} at {self.address}"))
            raise

    def close(self) -> None:
        self._break(ConnectionFailed(f"the connection to {self.address} was closed"))

    def _frame(self, deadline: float, into: Writable | None) -> memoryview:
        """The next response. Memory of the size it declares is only used as it is filled."""
        head = memoryview(bytearray(4))
        self._fill(head, deadline)
        (size,) = _SIZE.unpack(head)
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"a response of {size} bytes")
        fits = into is not None and len(into) >= size
        frame = memoryview(into if fits and into is not None else bytearray(size))[:size]
        self._fill(frame, deadline)
        return frame

    def _fill(self, view: memoryview, deadline: float) -> None:
        at, size, link = 0, len(view), self._link
        while at < size:
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError
            link.settimeout(left)
            count = link.recv_into(view[at:])
            if count == 0:
                raise ConnectionResetError("closed by the broker")
            at += count

    def _lost(self, error: OSError) -> KafkaError:
        if self._broken is not None:
            return self._broken
        if isinstance(error, ssl.SSLError):
            # With TLS 1.3 a broker refuses our certificate only after the handshake.
            return ClientAuthenticationFailed(
                f"TLS with {self.address} failed: {_tls_cause(error)}"
            )
        return ConnectionFailed(
            f"the connection to {self.address} was lost: {error.strerror or error}"
        )

    def _break(self, error: KafkaError) -> KafkaError:
        """Close with this error, unless an earlier one broke the connection: that is the cause."""
        if self._broken is None:
            self._broken = error
            with suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in recv
            self._link.close()
        return self._broken


def _opened(address: Address, settings: ClientSettings) -> socket.socket:
    timeout_s = settings.connect_timeout_ms / 1000
    link = socket.create_connection(address, timeout=timeout_s)
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in (
            (socket.SO_RCVBUF, settings.receive_buffer_bytes),
            (socket.SO_SNDBUF, settings.send_buffer_bytes),
        ):
            if size > 0:
                link.setsockopt(socket.SOL_SOCKET, option, size)
        tls = settings.security.tls
        if tls is not None:
            return tls.context().wrap_socket(link, server_hostname=address.host)
    except BaseException:
        link.close()
        raise
    return link


def _tls_cause(error: ssl.SSLError) -> str:
    verified = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""
    return verified or error.reason or str(error)


def _decoded(sent: SentRequest[R], frame: memoryview) -> R:
    correlation_id, at = read_response_header(frame, sent.api, sent.version)
    if correlation_id != sent.correlation_id:
        raise ProtocolError(f"response {correlation_id} instead of {sent.correlation_id}")
    if sent.api is APIS[API_VERSIONS]:
        return cast("R", versions.read_response(frame[at:], sent.version))
    return decoder(sent.response_type, sent.version)(frame[at:], 0)[0]
