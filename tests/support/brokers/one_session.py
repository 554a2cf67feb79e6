"""One session over a real socket pair, with a client at the other end."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from penstock.broker.context import AnyHandler, Peer
from penstock.broker.net.dispatch import Dispatch, Done
from penstock.broker.net.routes import Routes
from penstock.broker.net.session import Session
from penstock.broker.parked import Parked
from penstock.broker.waiter import Waiter
from penstock.broker.waiters import Waiters
from penstock.clock import SystemClock
from penstock.errors import KafkaError
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import Configs
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.metadata import MetadataRequest
from penstock.wire.schema import Message
from support.brokers.few_services import few_services


class Owner:
    """A server of one session."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tasks: asyncio.TaskGroup) -> None:
        self.waiters, self._tasks, self.ended = Waiters(loop), tasks, asyncio.Event()

    def closed(self, _session: Session) -> None:
        self.ended.set()

    def park(
        self,
        parked: Parked[Message],
        done: Callable[[Message], object],
        failed: Callable[[Exception], object],
    ) -> Waiter:
        return self.waiters.park(parked, done, failed)

    def run(self, work: Coroutine[Any, Any, Done], session: Session) -> None:
        async def reply() -> None:
            try:
                session.carry_out(await work)
            except KafkaError as error:
                session.refuse(error)

        self._tasks.create_task(reply())


class Client:
    """The client's end, with the session's owner for the test to inspect."""

    def __init__(self, sock: socket.socket, owner: Owner, session: Session) -> None:
        self.sock, self.owner, self.session = sock, owner, session
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes | bytearray) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def ask(self, number: int, *, topics: int = 0) -> None:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=bool(topics))
        await self.send(request_frame(APIS[3], 4, number, None, request))

    async def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await self._loop.sock_recv(self.sock, size - len(data))
            if not part:
                break
            data += part
        return data

    async def answer(self) -> tuple[int, bytes]:
        """Correlation id and body of the next response; (-1, b"") at the end."""
        size = await self.read(4)
        if not size:
            return -1, b""
        frame = await self.read(int.from_bytes(size, "big"))
        return int.from_bytes(frame[:4], "big"), frame[4:]


@asynccontextmanager
async def connected(
    handlers: dict[int, AnyHandler],
    max_frame_bytes: int = 1 << 20,
    quotas: dict[ClientEntity, Configs] | None = None,
) -> AsyncIterator[Client]:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        owner = Owner(loop, tasks)
        services = few_services(quotas)
        dispatch = Dispatch(Routes(handlers), services, SystemClock(), Peer("P", "test", 0))
        session = Session(loop, ours, dispatch, owner, max_frame_bytes)
        yield Client(theirs, owner, session)
        session.close("the test is over")
        theirs.close()


def served(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run
