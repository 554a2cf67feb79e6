"""A minimal HTTP/1.1 server, bounded in size, time and number of connections."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from penstock.errors import ConfigError
from penstock.http.message import (
    BadRequest,
    Body,
    HttpRequest,
    HttpResponse,
    plain,
    read_head,
    response_head,
)

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]
Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""Handlers by method and exact path; GET serves HEAD too."""

Admit: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse | None]]
"""Gets a request without its body; a response refuses the request."""

SMALL_BYTES = 1 << 16
"""A body up to this size is always read, so that the connection can stay open and the client
gets the response.
"""
CLOSE_S = 1.0


class _Refused(Exception):
    """A request that is refused without reading its body."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


class BoundAddress(NamedTuple):
    """The address on which the server listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Bounds on what a client may use."""

    head_bytes: int = 16 * 1024
    body_bytes: int = 1024 * 1024
    all_bodies_bytes: int = 16 * 1024 * 1024
    """The limit for all bodies above `SMALL_BYTES` together, until their requests are answered:
    each connection may send one.
    """
    connections: int = 100
    idle_s: float = 30
    """The time between two requests, including the headers of the second."""
    transfer_s: float = 30
    """The time for a body to arrive, and for the client to read a part of the response."""


@asynccontextmanager
async def serving(
    group: asyncio.TaskGroup,
    routes: Routes | Handler,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    sock: socket.socket | None = None,
    limits: HttpLimits | None = None,
    tls: ssl.SSLContext | None = None,
    setting: str = "listen",
    admit: Admit | None = None,
) -> AsyncIterator[BoundAddress]:
    """Serve until the end of the block; port 0 picks a free port. `sock` is already bound.

    An unusable address raises a `ConfigError` that names `setting`.

    A handler in place of routes gets every request. `admit` is called before a large body is read,
    so that unauthorised clients take no memory. Each connection is a child of `group`; all have
    ended when the block ends.
    """
    handler = routes if callable(routes) else exact(routes)
    server = _Server(handler, limits or HttpLimits(), admit)
    sessions: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sessions.add(session := group.create_task(server.session(reader, writer)))
        session.add_done_callback(sessions.discard)

    head_bytes = server.limits.head_bytes
    if sock is None:
        try:
            listener = await asyncio.start_server(accept, host, port, limit=head_bytes, ssl=tls)
        except OSError as error:
            raise cannot_listen(setting, host, port, error) from None
    else:
        listener = await asyncio.start_server(accept, sock=sock, limit=head_bytes, ssl=tls)
    try:
        yield BoundAddress(*listener.sockets[0].getsockname()[:2])
    finally:
        listener.close()
        for session in sessions:
            session.cancel()
        if sessions:
            await asyncio.wait(sessions)


def bound(setting: str, host: str, port: int) -> socket.socket:
    """A listening socket; raises `ConfigError` if the address is taken or invalid."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise cannot_listen(setting, host, port, error) from None


def cannot_listen(setting: str, host: str, port: int, error: OSError) -> ConfigError:
    """The error of an unusable address. A name that does not resolve has no known errno."""
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or str(error)
    return ConfigError(f"{setting}: cannot listen on {host or '*'}:{port}: {why}")


class _Server:
    """The state that all sessions share."""

    def __init__(self, handler: Handler, limits: HttpLimits, admit: Admit | None) -> None:
        self.handler, self.limits, self._admit = handler, limits, admit
        self._sessions = 0
        self._bodies_bytes = 0

    async def session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; its errors do not affect others."""
        self._sessions += 1
        # Bounds the write buffer for slow readers.
        writer.transport.set_write_buffer_limits(high=64 * 1024)
        try:
            if self._sessions > self.limits.connections:
                await self._send(writer, plain(HTTPStatus.SERVICE_UNAVAILABLE), close=True)
                return
            while await self._exchange(reader, writer):
                pass
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            _abort(writer)
        except asyncio.CancelledError:
            _abort(writer)
            raise
        except Exception:
            # An interrupted response must not look like a complete one.
            logger.exception("HTTP response failed while its body was sent; closing the connection")
            _abort(writer)
        finally:
            self._sessions -= 1
            await _closed(writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request; returns whether the connection stays open."""
        try:
            request = await self._read_head(reader)
            if request is None:
                return False
            await self._check_body(request)
        except BadRequest as bad:
            await self._send(writer, plain(bad.status, str(bad)), close=True)
            return False
        except _Refused as refused:
            await self._send(writer, refused.response, close=True)
            return False
        response = await self._answer(reader, request)
        await self._send(
            writer,
            response,
            close=not request.keeps_alive,
            chunked=not request.http_1_0,
            head=request.method == "HEAD",
        )
        return request.keeps_alive

    async def _read_head(self, reader: asyncio.StreamReader) -> HttpRequest | None:
        """The next request, without its body; None if the client closed the connection."""
        try:
            async with asyncio.timeout(self.limits.idle_s):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise BadRequest(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers too large"
            ) from None
        except asyncio.IncompleteReadError:
            return None
        return read_head(head)

    async def _check_body(self, request: HttpRequest) -> None:
        """Refuse a body that is too large, of a stranger, or one too many."""
        size = request.content_length
        if size > self.limits.body_bytes:
            raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body too large")
        if size <= SMALL_BYTES:
            return
        if self._admit is not None:
            refused = await self._admit(request)
            if refused is not None:
                raise _Refused(refused)
        if self._bodies_bytes + size > self.limits.all_bodies_bytes:
            busy = plain(HTTPStatus.TOO_MANY_REQUESTS, "too many large bodies at a time")
            raise _Refused(replace(busy, headers={"Retry-After": "1"}))

    async def _answer(self, reader: asyncio.StreamReader, request: HttpRequest) -> HttpResponse:
        """Read the body, if there is one, and answer."""
        size = request.content_length
        if not size:
            return await _answer(self.handler, request)
        large_bytes = size if size > SMALL_BYTES else 0
        self._bodies_bytes += large_bytes
        try:
            async with asyncio.timeout(self.limits.transfer_s):
                body = await reader.readexactly(size)
            return await _answer(self.handler, replace(request, body=body))
        finally:
            self._bodies_bytes -= large_bytes

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        response: HttpResponse,
        *,
        close: bool,
        chunked: bool = True,
        head: bool = False,
    ) -> None:
        writer.write(response_head(response, chunked=chunked, close=close))
        framed = chunked and not isinstance(response.body, bytes)
        if not head:
            async with aclosing(_parts(response.body)) as parts:
                async for part in parts:
                    if part:
                        writer.write(b"%x\r\n%b\r\n" % (len(part), part) if framed else part)
                    await self._drain(writer)
            if framed:
                writer.write(b"0\r\n\r\n")
        await self._drain(writer)

    async def _drain(self, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self.limits.transfer_s):
            await writer.drain()


def exact(routes: Routes) -> Handler:
    """A handler that dispatches by method and exact path."""

    async def handler(request: HttpRequest) -> HttpResponse:
        method = "GET" if request.method == "HEAD" else request.method
        found = routes.get((method, request.path))
        if found is not None:
            return await _answer(found, request)
        allowed = [each for each, path in routes if path == request.path]
        if not allowed:
            return plain(HTTPStatus.NOT_FOUND)
        if "GET" in allowed:
            allowed.append("HEAD")
        return replace(plain(HTTPStatus.METHOD_NOT_ALLOWED), headers={"Allow": ", ".join(allowed)})

    return handler


async def _answer(handler: Handler, request: HttpRequest) -> HttpResponse:
    try:
        response = handler(request)
        return response if isinstance(response, HttpResponse) else await response
    except Exception:
        logger.exception("HTTP handler of %s %s failed", request.method, request.path)
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR)


async def _parts(body: Body) -> AsyncGenerator[bytes, None]:
    """The body part by part; other tasks run in between."""
    if isinstance(body, bytes):
        yield body
    elif isinstance(body, AsyncGenerator):
        async with aclosing(body):
            async for part in body:
                yield part
    else:
        for part in body:
            yield part
            await asyncio.sleep(0)


def _abort(writer: asyncio.StreamWriter) -> None:
    with suppress(AttributeError):  # a bug of Python 3.11.2 with closed TLS connections
        writer.transport.abort()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    except (TimeoutError, ConnectionError):
        _abort(writer)
