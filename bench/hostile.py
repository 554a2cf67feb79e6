"""Hostile clients: python -m bench.hostile PORT loris|logins COUNT

`loris` holds COUNT connections open, each with a request that never ends. `logins` fails to log in
with SCRAM, COUNT times a second. Both print `ready` when they run, and run until killed.
"""

import asyncio
import struct
import sys
from base64 import b64encode
from contextlib import suppress

from penstock.wire.apis import api_of
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from penstock.wire.schema import Message

WRONG = b64encode(bytes(64)).decode()
BYTE_EVERY_S = 5.0


async def loris(port: int) -> None:
    """A connection that sends a byte of its request every five seconds; reconnects if closed."""
    while True:
        with suppress(OSError):
            _, out = await asyncio.open_connection("127.0.0.1", port)
            out.write(struct.pack(">i", 60_000))
            while True:
                out.write(b"\0")
                await out.drain()
                await asyncio.sleep(BYTE_EVERY_S)
        await asyncio.sleep(0.1)


async def ask(incoming: asyncio.StreamReader, out: asyncio.StreamWriter, request: Message) -> bytes:
    out.write(request_frame(api_of(type(request)), 1, 1, "hostile", request))
    (size,) = struct.unpack(">i", await incoming.readexactly(4))
    return await incoming.readexactly(size)


async def failing_login(port: int) -> None:
    incoming, out = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError, asyncio.IncompleteReadError):
        await ask(incoming, out, SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
        first = await ask(incoming, out, SaslAuthenticateRequest(b"n,,n=bob,r=hostile"))
        nonce = first[first.index(b"r=") :].split(b",")[0].decode()
        last = f"c=biws,{nonce},p={WRONG}"
        await ask(incoming, out, SaslAuthenticateRequest(last.encode()))
    out.close()


async def logins(port: int, a_second: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        while True:
            tasks.create_task(_quietly(port))
            await asyncio.sleep(1 / a_second)


async def _quietly(port: int) -> None:
    with suppress(OSError, ValueError):
        await failing_login(port)


async def main(port: int, what: str, count: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        if what == "loris":
            for _ in range(count):
                tasks.create_task(loris(port))
        else:
            tasks.create_task(logins(port, count))
        await asyncio.sleep(1)
        print("ready", flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
