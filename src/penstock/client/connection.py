"""One connection to a broker: requests are pipelined, responses come in the same order."""

import asyncio
import errno
import math
import re
import secrets
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar, cast

from penstock.client import versions
from penstock.client.address import Address
from penstock.client.errors import (
    ConnectionFailed,
    ConnectionRefused,
    RequestTimedOut,
    TlsFailed,
    check,
)
from penstock.client.sasl import (
    RENEWED_SHARE,
    ClientAuthenticationFailed,
    Login,
    exchange,
    next_message,
)
from penstock.client.versions import api_versions_request
from penstock.errors import ConfigError, ErrorCode, KafkaError, ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import APIS, Api, api_of
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decoder
from penstock.wire.frame import API_VERSIONS, FrameBuffer
from penstock.wire.messages.api_versions import ApiVersionsResponse
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

MAX_RESPONSE_BYTES = 1 << 30
CLOSE_TIMEOUT_S = 2.0


class _InFlight(NamedTuple, Generic[R]):
    """A request in flight, and the future of its response."""

    api: Api
    version: int
    correlation_id: int
    response_type: type[R]
    future: asyncio.Future[R]
    as_view: bool


async def connect(
    address: Address,
    *,
    client_id: str,
    software: str = "penstock",
    tls: ssl.SSLContext | None = None,
    login: Login | None = None,
    source: str | None = None,
    timeout_ms: int = 10_000,
) -> "Connection":
    """Connect, from the address `source` if given, negotiate API versions, and log in.

    `software` is the name by which the client introduces itself (KIP-511).
    """
    loop = asyncio.get_running_loop()
    connection = Connection(address, client_id, software)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            here = None if source is None else (source, 0)
            await loop.create_connection(lambda: connection, *address, ssl=tls, local_addr=here)
            await connection.negotiate()
            if login is not None:
                await connection.log_in(login)
    except TimeoutError:
        connection.abort()
        raise ConnectionFailed(f"{address} did not answer within {timeout_ms} ms") from None
    except ConnectionRefusedError:
        raise ConnectionRefused(f"cannot connect to {address}: nothing listens there") from None
    except (ssl.SSLError, ConnectionResetError) as error:
        if tls is None:
            raise ConnectionFailed(f"cannot connect to {address}: {error.strerror}") from None
        raise TlsFailed(f"cannot connect to {address}: {tls_reason(error)}") from None
    except OSError as error:
        if refused_everywhere(error):
            raise ConnectionRefused(f"cannot connect to {address}: nothing listens there") from None
        raise ConnectionFailed(f"cannot connect to {address}: {error.strerror or error}") from None
    except BaseException:
        connection.abort()
        raise
    return connection


def tls_reason(error: OSError) -> str:
    """Why a handshake failed. A broker that expects plain text just ends the connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return "it does not seem to speak TLS, which security.protocol asks for"
    return f"no agreement on TLS: {getattr(error, 'reason', None) or error}"


def refused_everywhere(error: OSError) -> bool:
    """Whether every address of a host with several addresses refused the connection.

    Before Python 3.12 asyncio shows that only in the error's text. There, an address that cannot be
    tried from `source`, such as IPv6 from an IPv4 address, has no error number.
    """
    numbers = re.findall(r"\[Errno (\d+)\]", str(error))
    return bool(numbers) and all(int(each) == errno.ECONNREFUSED for each in numbers)


class Connection(asyncio.BufferedProtocol):
    """Created by `connect`. Any task of its loop may call it; it has no task of its own.

    When it breaks, every request in flight fails with the same error.
    """

    def __init__(self, address: Address, client_id: str, software: str) -> None:
        self.address, self.client_id = address, client_id
        self._introduction = api_versions_request(software)
        self.versions = {API_VERSIONS: versions.FIRST_VERSION}
        """The version used for each API, by its key."""
        self.features: dict[str, int] = {}
        """The cluster's finalized features and their levels, such as `transaction.version`."""
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES)
        self._in_flight: deque[_InFlight[Any]] = deque()
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._broken: KafkaError | None = None
        self._lost = asyncio.get_running_loop().create_future()
        self._login: Login | None = None
        self._renew_at = math.inf
        """When to log in again, by the loop's clock."""
        self._held: list[tuple[bytearray, _InFlight[Any] | None]] | None = None
        """Requests that wait for a login to end; None: no login is under way."""

    async def log_in(self, login: Login) -> None:
        """Authenticate by SASL, before any other request, or again while other requests wait."""
        self._held = []
        try:
            lifetime_ms = await self._authenticate(login)
        except BaseException as error:  # even if cancelled: no request would be answered
            self._break(error if isinstance(error, KafkaError) else ConnectionFailed(f"no {login}"))
            raise
        self._login = login
        if lifetime_ms > 0:
            self._renew_at = self._lost.get_loop().time() + lifetime_ms / 1000 * RENEWED_SHARE
        held, self._held = self._held, None
        for frame, in_flight in held:
            self._write(frame, in_flight)

    async def renew_login(self) -> None:
        """Log in again on the same connection, if it is time to (KIP-368)."""
        is_due = self._held is None and self._lost.get_loop().time() >= self._renew_at
        if is_due and self._login is not None and self.is_open:
            await self.log_in(self._login)

    async def _authenticate(self, login: Login) -> int:
        """Exchange the messages of a login; returns its lifetime in ms, 0: unlimited."""
        began = await self._send(
            SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse, 1
        )
        if began.error_code:
            offered = ", ".join(began.mechanisms) or "none"
            raise ClientAuthenticationFailed(
                f"{self.address} does not offer {login.mechanism}; it offers {offered}"
            )
        shown = ""
        if login.token is not None:
            try:
                shown = await asyncio.to_thread(login.token.read)
            except ConfigError as error:
                raise ClientAuthenticationFailed(str(error)) from None
        steps = exchange(login, secrets.token_hex(20), shown)
        token = next(steps)
        while True:
            response = await self._send(
                SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse
            )
            if response.error_code:
                raise ClientAuthenticationFailed(
                    f"{self.address} refuses the {login}: {response.error_message}"
                )
            # The server chooses SCRAM's number of hash iterations: keep them off the loop.
            following = await asyncio.to_thread(next_message, steps, response.auth_bytes)
            if following is None:
                return response.session_lifetime_ms
            token = following

    @property
    def is_open(self) -> bool:
        return self._broken is None and self._transport is not None

    def send(
        self,
        request: Message,
        response_type: type[R],
        version: int | None = None,
        *,
        as_view: bool = False,
    ) -> asyncio.Future[R]:
        """Send at once, in the highest common version unless one is given. The future holds the
        response; cancel it to discard the response.

        With `as_view`, records in the response may be views of the receive buffer, valid only until
        the next request is sent.
        """
        return self._send(request, response_type, version, as_view=as_view, waits=True)

    def _send(
        self,
        request: Message,
        response_type: type[R],
        version: int | None = None,
        *,
        as_view: bool = False,
        waits: bool = False,
    ) -> asyncio.Future[R]:
        """`waits` says whether the request waits for the end of a login."""
        if self._broken is not None or self._transport is None:
            raise self._broken or ConnectionFailed(f"not connected to {self.address}")
        api = api_of(type(request))
        assert response_type.__name__ == f"{api.name}Response", (
            f"{response_type.__name__} does not answer {api.name}"
        )
        if version is None:
            version = self.version_of(type(request))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = request_frame(api, version, self._correlation_id, self.client_id, request)
        future: asyncio.Future[R] = self._lost.get_loop().create_future()
        sent = _InFlight(api, version, self._correlation_id, response_type, future, as_view)
        if waits and self._held is not None:
            self._held.append((frame, sent))
        else:
            self._write(frame, sent)
        return future

    def _write(self, frame: bytearray, in_flight: _InFlight[Any] | None) -> None:
        if self._transport is None or self._broken is not None:
            return
        if in_flight is not None:
            self._in_flight.append(in_flight)
        self._transport.write(frame)

    def post(self, request: Message, version: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0."""
        if self._broken is not None or self._transport is None:
            raise self._broken or ConnectionFailed(f"not connected to {self.address}")
        api = api_of(type(request))
        if version is None:
            version = self.version_of(type(request))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = request_frame(api, version, self._correlation_id, self.client_id, request)
        if self._held is not None:
            self._held.append((frame, None))
        else:
            self._transport.write(frame)

    def version_of(self, request: type[Message]) -> int:
        """The highest common version of the request."""
        return versions.chosen(self.versions, api_of(request), str(self.address))

    async def call(
        self,
        request: Message,
        response_type: type[R],
        *,
        timeout_ms: int,
        version: int | None = None,
        as_view: bool = False,
    ) -> R:
        """Send and wait for the response; a timeout closes the connection."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.renew_login()
                return await self.send(request, response_type, version, as_view=as_view)
        except TimeoutError:
            name = api_of(response_type).name
            late = RequestTimedOut(f"{self.address} did not answer {name} within {timeout_ms} ms")
            self._break(late)
            raise late from None

    async def negotiate(self) -> None:
        """Request the broker's API versions; again if it does not support the first version."""
        response = await self.send(self._introduction, ApiVersionsResponse)
        if response.error_code != ErrorCode.NONE:
            again = versions.second_version(response, str(self.address))
            self.versions = {API_VERSIONS: again}
            response = await self.send(self._introduction, ApiVersionsResponse)
            check(response.error_code, f"ApiVersions of {self.address}")
        self.versions = versions.common(response.api_keys)
        self.features = {each.name: each.max_version_level for each in response.finalized_features}

    def interrupt_wait(self) -> None:
        """If a request is in flight, send another one, so that a waiting fetch is answered at once.

        The broker's side is `Parked.gives_way`. A follower that has more to fetch uses this.
        """
        if self._in_flight:
            self.send(self._introduction, ApiVersionsResponse).cancel()

    async def wait_closed(self) -> None:
        """Wait until the connection is lost or closed."""
        await asyncio.shield(self._lost)

    async def close(self) -> None:
        self._break(ConnectionFailed(f"the connection to {self.address} was closed"))
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.shield(self._lost)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            with suppress(AttributeError):  # of Python 3.11.2, from TLS that has just been lost
                self._transport.abort()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  FrameBuffer sizes itself
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.received(nbytes)
        try:
            while (frame := self._frames.next()) is not None:
                self._receive(frame)
        except ProtocolError as error:
            self._break(ConnectionFailed(f"{self.address} broke the protocol: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(self._loss(exc))
        self._lost.set_result(None)

    def _loss(self, error: Exception | None) -> ConnectionFailed:
        if isinstance(error, ssl.SSLError):  # TLS 1.3: the broker sees our certificate only now
            return TlsFailed(f"cannot connect to {self.address}: {tls_reason(error)}")
        number = self._in_flight[0].correlation_id if self._in_flight else 0
        if number == 1 and self._transport and self._transport.get_extra_info("sslcontext") is None:
            return TlsFailed(
                f"{self.address} ended the connection at the first request: it seems to speak TLS, "
                "or is not a Kafka broker"
            )
        why = f": {error}" if error else ""
        if number == 2 and not error and self._login is None:  # ApiVersions needs none
            why = " at the first request; perhaps it asks for a login: security.protocol=SASL_…"
        return ConnectionFailed(f"the connection to {self.address} was lost{why}")

    def _receive(self, frame: memoryview) -> None:
        if not self._in_flight:
            raise ProtocolError("a response without a request")
        sent = self._in_flight.popleft()
        try:
            correlation_id, body = read_response_header(frame, sent.api, sent.version)
            if correlation_id != sent.correlation_id:
                raise ProtocolError(f"response {correlation_id} instead of {sent.correlation_id}")
            if sent.future.cancelled():
                return
            # Copy unless the caller takes a view: the buffer is reused, at once if another response
            # is in flight. Small responses also decode faster from bytes.
            is_view = sent.as_view and not self._in_flight
            contents = frame[body:] if is_view else bytes(frame[body:])
            sent.future.set_result(_decoded(sent, contents))
        except ProtocolError:
            self._in_flight.appendleft(sent)
            raise

    def _break(self, error: KafkaError) -> None:
        if self._broken is not None:
            return
        self._broken = error
        if self._transport is not None:
            self._transport.close()
        held = [sent for _, sent in self._held or () if sent is not None]
        for future in [each.future for each in (*self._in_flight, *held)]:
            if not future.done():
                future.set_exception(error)
        self._in_flight.clear()


def _decoded(sent: _InFlight[R], body: Buffer) -> R:
    if sent.api is APIS[API_VERSIONS]:
        return cast("R", versions.read_response(body, sent.version))
    return decoder(sent.response_type, sent.version)(body, 0)[0]
