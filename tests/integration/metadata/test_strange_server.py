"""A server that answers nonsense costs a session, but not the session's thread."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from penstock.config.connect_string import ConnectString
from penstock.metadata.store import SessionState
from penstock.metadata.zookeeper.store import ZooKeeperStore
from penstock.testing.store_ensemble import Inbox


async def frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def serving(
    answers: list[bytes],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Opens a session for each connection, and answers the first request of each in turn."""
    sessions = iter(range(1, 100))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await frame(reader)
            password = framed(bytes(16))
            writer.write(framed(struct.pack(">iiq", 0, 4000, next(sessions)) + password + b"\0"))
            await frame(reader)
            writer.write(answers.pop(0))
            await frame(reader)  # until the client disconnects
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    return serve


def header(xid: int, error: int = 0) -> bytes:
    return struct.pack(">iqi", xid, 1, error)


SENSE = framed(header(1) + framed(b"/"))
NONSENSE = {
    "an answer to nothing": framed(header(99) + framed(b"/")),
    "an error of no meaning": framed(header(1, -9999)),
    "an answer cut short": framed(b"\0\0"),
    "a negative size": struct.pack(">i", -5),
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_after_a_nonsensical_response_the_next_session_works(nonsense: bytes) -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(serving([nonsense, SENSE]), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = ZooKeeperStore(
            ConnectString((("127.0.0.1", port),)), session_timeout_ms=1000, max_in_flight=10
        )
        states: Inbox[SessionState] = Inbox()
        store.watch_session(states.put)
        store.start()
        try:
            await states.until(SessionState.CONNECTED)
        finally:
            await store.close()
            server.close()
            await server.wait_closed()

    asyncio.run(scenario())
