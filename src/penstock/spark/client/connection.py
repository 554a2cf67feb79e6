"""One blocking connection to a broker: requests go out in a row, answers come back in order.

Spark's workers are plain processes without a loop, and what they move is large: so requests are
sent ahead of time, and records are views of the buffer that the socket wrote into.
"""

import secrets
import socket
import ssl
from collections import deque
from contextlib import suppress
from struct import Struct
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar, cast

from penstock import __version__
from penstock.client import versions
from penstock.client.address import Address
from penstock.client.errors import ConnectionFailed, RequestTimedOut, check
from penstock.client.sasl import AuthenticationFailed, Login, exchange
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.spark.client.settings import ClientSettings
from penstock.wire.apis import APIS, Api, api_of
from penstock.wire.codec import decoder
from penstock.wire.frame import request_frame
from penstock.wire.header import API_VERSIONS, read_response_header
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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


class Ticket(Generic[R]):
    """A request that was sent; `Connection.receive` gives its answer."""

    __slots__ = ("answer", "answer_type", "api", "correlation_id", "expected", "version")

    def __init__(
        self, api: Api, version: int, correlation_id: int, answer_type: type[R], *, expected: bool
    ) -> None:
        self.api, self.version, self.correlation_id = api, version, correlation_id
        self.answer_type, self.expected = answer_type, expected
        self.answer: R | None = None


def connect(address: Address, settings: ClientSettings) -> "Connection":
    """An open connection that has logged in and knows which versions the broker speaks."""
    timeout_ms = settings.connect_timeout_ms
    try:
        link = _opened(address, settings)
    except TimeoutError:
        raise ConnectionFailed(f"{address} did not answer within {timeout_ms} ms") from None
    except ssl.SSLError as error:
        why = _tls_cause(error)
        raise AuthenticationFailed(f"TLS with {address} failed: {why}") from None
    except OSError as error:
        raise ConnectionFailed(f"cannot connect to {address}: {error.strerror or error}") from None
    connection = Connection(address, link, settings)
    try:
        connection.negotiate()
        if settings.security.login is not None:
            connection.log_in(settings.security.login)
    except BaseException:
        connection.close()
        raise
    return connection


class Connection:
    """Made by `connect`. One thread uses it at a time; any may `close` it, which ends a wait.

    Whatever breaks it, fails every request that is on its way with the same error.
    """

    def __init__(self, address: Address, link: socket.socket, settings: ClientSettings) -> None:
        self.address = address
        self.versions = {API_VERSIONS: versions.FIRST_VERSION}
        """The version that each API is called in, by its key."""
        self._link, self._settings = link, settings
        self._awaited: deque[Ticket[Any]] = deque()
        self._correlation_id = 0
        self._broken: KafkaError | None = None

    @property
    def is_open(self) -> bool:
        return self._broken is None

    @property
    def unanswered(self) -> int:
        """Requests whose answers were not received yet."""
        return len(self._awaited)

    def send(self, request: Message, answer: type[R], *, expected: bool = True) -> Ticket[R]:
        """Send now, receive later. `expected` is False for what is never answered (acks=0)."""
        if self._broken is not None:
            raise self._broken
        api = api_of(type(request))
        assert answer.__name__ == f"{api.name}Response", f"{api.name} is not answered so"
        version = versions.chosen(self.versions, api, str(self.address))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = request_frame(api, version, self._correlation_id, self._settings.client_id, request)
        ticket = Ticket(api, version, self._correlation_id, answer, expected=expected)
        try:
            self._link.settimeout(self._settings.request_timeout_ms / 1000)
            self._link.sendall(frame)
        except TimeoutError:
            raise self._break(RequestTimedOut(f"{self.address} does not take {api.name}")) from None
        except OSError as error:
            raise self._break(self._lost(error)) from None
        if expected:
            self._awaited.append(ticket)
        return ticket

    def receive(
        self, ticket: Ticket[R], *, timeout_ms: int | None = None, into: Writable | None = None
    ) -> R:
        """The answer; those that come before it are kept for whoever asks for them.

        `into` is where its bytes go if they fit: records in the answer are views of it, and gone
        when it is used again.
        """
        assert ticket.expected, "nobody answers this request"
        limit_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline = monotonic() + limit_ms / 1000
        while ticket.answer is None:
            if self._broken is not None:
                raise self._broken
            assert self._awaited, "the ticket is of another connection"
            awaited = self._awaited[0]
            try:
                frame = self._frame(deadline, into if awaited is ticket else None)
                awaited.answer = _decoded(awaited, frame)
            except TimeoutError:
                late = f"{self.address} did not answer {awaited.api.name} within {limit_ms} ms"
                raise self._break(RequestTimedOut(late)) from None
            except OSError as error:
                raise self._break(self._lost(error)) from None
            except ProtocolError as error:
                broke = ConnectionFailed(f"{self.address} broke the protocol: {error}")
                raise self._break(broke) from None
            self._awaited.popleft()
        return ticket.answer

    def call(self, request: Message, answer: type[R], *, timeout_ms: int | None = None) -> R:
        """Send and wait. A broker that is late is taken for lost: the connection closes."""
        return self.receive(self.send(request, answer), timeout_ms=timeout_ms)

    def negotiate(self) -> None:
        """Ask what the broker speaks: once, or twice if it is older than the first question."""
        request = ApiVersionsRequest(
            client_software_name="penstock", client_software_version=__version__
        )
        limit_ms = self._settings.connect_timeout_ms
        response = self.call(request, ApiVersionsResponse, timeout_ms=limit_ms)
        if response.error_code != ErrorCode.NONE:
            again = versions.second_version(response, str(self.address))
            self.versions = {API_VERSIONS: again}
            response = self.call(request, ApiVersionsResponse, timeout_ms=limit_ms)
            check(response.error_code, f"ApiVersions of {self.address}")
        self.versions = versions.common(response.api_keys)

    def log_in(self, login: Login) -> None:
        about = f"{login.mechanism} login of {login.username} at {self.address}"
        if self.versions.get(_SASL_HANDSHAKE, 0) < 1:
            raise AuthenticationFailed(f"{about}: the broker's listener offers no SASL")
        offer = self.call(SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse)
        check(offer.error_code, about, f"offered: {', '.join(offer.mechanisms) or 'nothing'}")
        words = exchange(login, secrets.token_urlsafe(24))
        said = next(words)
        while True:
            answer = self.call(SaslAuthenticateRequest(auth_bytes=said), SaslAuthenticateResponse)
            check(answer.error_code, about, answer.error_message)
            try:
                said = words.send(bytes(answer.auth_bytes))
            except StopIteration:
                return

    def close(self) -> None:
        self._break(ConnectionFailed(f"the connection to {self.address} was closed"))

    def _frame(self, deadline: float, into: Writable | None) -> memoryview:
        """The next answer. Memory for what its size declares is only taken when it is filled."""
        head = memoryview(bytearray(4))
        self._fill(head, deadline)
        (size,) = _SIZE.unpack(head)
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"an answer of {size} bytes")
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
            return AuthenticationFailed(f"TLS with {self.address} failed: {_tls_cause(error)}")
        return ConnectionFailed(
            f"the connection to {self.address} was lost: {error.strerror or error}"
        )

    def _break(self, error: KafkaError) -> KafkaError:
        """The first error wins: it is the one that says why."""
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


def _decoded(ticket: Ticket[R], frame: memoryview) -> R:
    correlation_id, at = read_response_header(frame, ticket.api, ticket.version)
    if correlation_id != ticket.correlation_id:
        raise ProtocolError(f"answer {correlation_id} instead of {ticket.correlation_id}")
    if ticket.api is APIS[API_VERSIONS]:
        return cast("R", versions.read_response(frame[at:], ticket.version))
    return decoder(ticket.answer_type, ticket.version)(frame[at:], 0)[0]
