"""Sends one request to another HTTP server, on a new connection."""

import asyncio
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from penstock.http.message import HttpRequest, HttpResponse

MAX_HEAD: Final = 16 * 1024
MAX_BODY: Final = 16 * 1024 * 1024


class RequestFailed(Exception):
    """No complete response arrived."""


class HttpServerAddress(NamedTuple):
    """The address of a server; TLS is used if there is a context."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def at(self) -> str:
        """The value of the Host header."""
        return authority(self.host, self.port)


def authority(host: str, port: int) -> str:
    """Host and port as in a URL, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def ask(
    server: HttpServerAddress, request: HttpRequest, headers: Mapping[str, str], timeout_s: float
) -> HttpResponse:
    """Send the request with these headers, and return the response."""
    at = server.at
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(
                server.host, server.port, ssl=server.tls, limit=MAX_HEAD
            )
            try:
                writer.write(_request(at, request, headers))
                await writer.drain()
                return await _response(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
        raise RequestFailed(f"{at}: {str(error) or type(error).__name__}") from None


def _request(at: str, request: HttpRequest, headers: Mapping[str, str]) -> bytes:
    target = f"{request.path}?{request.query}" if request.query else request.path
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {at}", "Connection: close"]
    lines += [f"Content-Length: {len(request.body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.body


async def _response(reader: asyncio.StreamReader) -> HttpResponse:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    status = HTTPStatus(int(first.split(" ")[1]))
    size = int(headers.get("content-length", "0"))
    if size > MAX_BODY:
        raise ValueError("the answer is too large")
    body = await reader.readexactly(size)
    return HttpResponse(status, headers.get("content-type", ""), body, headers)
