"""Requests from one server to another."""

import asyncio

import pytest

from penstock.http.access import check_local
from penstock.http.client import HttpServerAddress, ask
from penstock.http.message import HttpRequest, read_head


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_host_header_is_recognised_as_the_requested_host(host: str) -> None:
    """An instance of the registry on loopback accepts requests that another local one forwards."""
    heads: list[HttpRequest] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(read_head(await reader.readuntil(b"\r\n\r\n")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def asking() -> None:
        try:
            listener = await asyncio.start_server(answer, host, 0)
        except OSError:
            pytest.skip(f"this machine has no {host}")
        async with listener:
            port = listener.sockets[0].getsockname()[1]
            await ask(HttpServerAddress(host, port), HttpRequest("GET", "/", "", {}), {}, 30)

    asyncio.run(asking())
    check_local(heads[0])
