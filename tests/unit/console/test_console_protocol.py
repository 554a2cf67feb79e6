"""Connections of the console that strangers open and do not use."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from penstock.console.protocol import BoundedProtocol
from penstock.console.serving import server_config

ASK = b"GET / HTTP/1.1\r\nHost: a\r\n"
WHOLE = ASK + b"\r\n"
LAST = ASK + b"Connection: close\r\n\r\n"
BODY = b"answered"


async def answering(_scope: Scope, _receive: Receive, send: Send) -> None:
    await asyncio.sleep(0.4)  # longer than a connection may be idle here
    size = str(len(BODY)).encode()
    headers = [(b"content-length", size)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """Signals belong to the main thread, so the server leaves them alone."""
    server = uvicorn.Server(server_config(answering))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield sock.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)
        assert not thread.is_alive()


def read(connected: socket.socket) -> bytes:
    """Until the server closes the connection."""
    return b"".join(iter(lambda: connected.recv(4096), b""))


@pytest.mark.parametrize("sent", [b"", ASK, WHOLE + ASK])
def test_a_connection_without_a_whole_request_ends(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "idle_s", 0.1)
    with serving() as address, socket.create_connection(address, 10) as connected:
        connected.sendall(sent)
        assert read(connected).endswith(BODY) == sent.startswith(WHOLE)


def test_one_connection_too_many_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "most_connections", 1)
    with serving() as address, socket.create_connection(address, 10) as first:
        with socket.create_connection(address, 10) as second:
            assert read(second) == b""
        first.sendall(LAST)
        assert read(first).endswith(BODY)
