"""A session on a store that another process owns. See `MetadataStore`.

Everything happens on the loop. The connection is opened again when it is lost; the listening socket
outlives its owner, so a new owner finds the connections that wait.
"""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from penstock.errors import ConfigError
from penstock.metadata.connecting import start_and_connect
from penstock.metadata.errors import (
    ConnectionLost,
    NoNode,
    NotConnected,
    SessionExpired,
    StoreError,
)
from penstock.metadata.shared.connection import FrameConnection
from penstock.metadata.shared.messages import (
    Alive,
    Bye,
    Changed,
    Children,
    Hello,
    Nodes,
    Read,
    Refused,
    Request,
    Response,
    Results,
    Unwatch,
    Watch,
    Welcome,
    Write,
    decode_response,
    encode,
)
from penstock.metadata.store import (
    NO_SESSION,
    Answer,
    Change,
    ChildrenChanged,
    DataChanged,
    Node,
    Operation,
    SessionState,
    Subscription,
)
from penstock.metadata.subscriptions import KeySubscription, Subscriptions
from penstock.metadata.writes import Writes

logger = logging.getLogger(__name__)

RETRY_S = 0.02
REFUSED_S = 0.5
"""Pause between attempts to open a session that the owner's disk has no room for."""
CLOSE_S = 2.0


@asynccontextmanager
async def open_shared(
    path: Path, name: str, *, session_timeout_ms: int, connection_timeout_ms: int
) -> AsyncIterator["SharedStore"]:
    """A connected session for the process of this name."""
    connect = partial(connected, path)
    store = SharedStore(asyncio.get_running_loop(), connect, name, session_timeout_ms)
    try:
        try:
            await start_and_connect(store, connection_timeout_ms)
        except TimeoutError:
            raise ConfigError(
                f"the metadata store at {path} did not answer within {connection_timeout_ms} ms"
            ) from None
        yield store
    finally:
        await store.close()


def connected(path: Path) -> socket.socket:
    """A connection to the owner; OSError without one, or if its queue is full."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(0)
    try:
        sock.connect(os.fspath(path))
    except OSError:
        sock.close()
        raise
    return sock


class SharedStore(Writes):
    """Begins SUSPENDED; `start` connects."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connect: Callable[[], socket.socket],
        name: str,
        session_timeout_ms: int,
    ) -> None:
        self._loop, self._connect, self._name = loop, connect, name
        self._timeout_ms = session_timeout_ms
        self._state = SessionState.SUSPENDED
        self._session_id = NO_SESSION
        self._closed = False
        self._connection: FrameConnection | None = None
        self._waiting: deque[asyncio.Future[Response]] = deque()
        self._timer: asyncio.Handle | None = None
        self._heard_s = 0.0
        self._refused: Refused | None = None
        self._watches: Subscriptions[Change] = Subscriptions(loop.call_soon)
        self._session_watches: Subscriptions[SessionState] = Subscriptions(loop.call_soon)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        return self._state

    def start(self) -> None:
        """Connect; retries until an owner listens."""
        if self._closed:
            return
        try:
            sock = self._connect()
        except OSError:
            self._timer = self._loop.call_later(RETRY_S, self.start)
            return
        self._connection = FrameConnection(self._loop, sock, self._received, self._lost)
        watched = tuple(self._watches.watched())
        self._connection.send(
            encode(Hello(self._session_id, self._name, self._timeout_ms, watched))
        )

    def watch_session(self, on_state: Callable[[SessionState], None]) -> Subscription:
        return self._session_watches.add(on_state, SessionState)

    async def watch(
        self,
        on_change: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        keys: tuple[Change, ...] = (*map(DataChanged, data), *map(ChildrenChanged, children))
        # Before the answer: a change may follow right behind it.
        watch = _Watch(self, self._watches.add(on_change, keys))
        try:
            await self._ask(Watch(keys))
        except BaseException:
            watch.cancel()
            raise
        return watch

    def unwatch(self, subscription: KeySubscription[Change]) -> None:
        """Cancel a subscription, and stop watching keys at the owner that have no other."""
        subscription.cancel()
        unwatched = tuple(key for key in subscription.keys if key not in self._watches)
        if unwatched and self._connection is not None and not self._closed:
            self._connection.send(encode(Unwatch(unwatched)))

    async def get(self, path: str) -> Node:
        found = await self.get_many((path,))
        if path not in found:
            raise NoNode(path)
        return found[path]

    async def exists(self, path: str) -> bool:
        return path in await self.get_many((path,))

    async def children(self, path: str) -> list[str]:
        found = await self.children_many((path,))
        if path not in found:
            raise NoNode(path)
        return found[path]

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        answer = await self._ask(Read(tuple(paths)))
        assert isinstance(answer, Nodes)
        return {node.path: node for node in answer.nodes}

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        answer = await self._ask(Read(tuple(paths), children=True))
        assert isinstance(answer, Children)
        return answer.names

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        answer = await self._ask(Write(tuple(map(tuple, multis))))
        assert isinstance(answer, Results)
        return [_result(each) for each in answer.multis]

    async def close(self) -> None:
        """End the session; if its owner cannot be reached, it ends with the connection."""
        if self._closed:
            return
        goodbye = None
        if self._state is SessionState.CONNECTED:
            goodbye = self._send(Bye())
        self._closed, self._state = True, SessionState.EXPIRED
        if goodbye is not None:
            await asyncio.wait((goodbye,), timeout=CLOSE_S)
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None:
            self._connection.close()
        self._fail_waiting()

    async def _ask(self, request: Request) -> Response:
        match self._state:
            case SessionState.SUSPENDED:
                raise NotConnected("/")
            case SessionState.EXPIRED:
                raise SessionExpired("/")
            case SessionState.CONNECTED:
                pass
        answer = await self._send(request)
        if isinstance(answer, Refused):
            raise answer.error()
        return answer

    def _send(self, request: Request) -> "asyncio.Future[Response]":
        assert self._connection is not None
        answered: asyncio.Future[Response] = self._loop.create_future()
        self._waiting.append(answered)
        self._connection.send(encode(request))
        return answered

    def _received(self, frame: bytes) -> None:
        self._heard_s = self._loop.time()
        match decode_response(frame):
            case Changed(keys):
                for key in keys:
                    self._watches.notify(key)
            case Alive():
                return
            case Welcome(session_id):
                self._welcomed(session_id)
            case Refused() as refused if self._state is SessionState.SUSPENDED:
                if refused != self._refused:
                    self._refused = refused
                    logger.warning("the metadata store opens no session: %s", refused.text)
                self._lose(REFUSED_S)
            case answer:
                answered = self._waiting.popleft()
                if not answered.done():
                    answered.set_result(answer)

    def _welcomed(self, session_id: int) -> None:
        if self._closed:
            return
        former, self._session_id, self._refused = self._session_id, session_id, None
        if former not in {NO_SESSION, session_id}:
            logger.warning("the session %#x with the metadata store has expired", former)
            self._become(SessionState.EXPIRED)
        logger.info("connected to the metadata store, session %#x", session_id)
        self._become(SessionState.CONNECTED)
        self._keep_alive()

    def _keep_alive(self) -> None:
        if self._connection is None or self._closed:
            return
        if self._loop.time() - self._heard_s > self._timeout_ms / 1000:
            self._lose()  # the owner hangs
            return
        self._connection.send(encode(Alive()))
        self._timer = self._loop.call_later(self._timeout_ms / 3000, self._keep_alive)

    def _lose(self, retry_s: float = RETRY_S) -> None:
        if self._connection is not None:
            self._connection.close()
        self._lost(retry_s)

    def _lost(self, retry_s: float = RETRY_S) -> None:
        self._connection = None
        if self._timer is not None:
            self._timer.cancel()
        if self._state is SessionState.CONNECTED:
            logger.warning("lost the connection to the metadata store")
            self._become(SessionState.SUSPENDED)
        self._fail_waiting()
        self._timer = self._loop.call_later(retry_s, self.start)

    def _fail_waiting(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for answered in waiting:
            if not answered.done():
                answered.set_exception(ConnectionLost("/"))
                answered.exception()  # a cancelled caller does not retrieve it

    def _become(self, state: SessionState) -> None:
        self._state = state
        self._session_watches.notify(state)


class _Watch:
    """A subscription whose cancellation also ends the watches at the owner."""

    def __init__(self, store: SharedStore, inner: KeySubscription[Change]) -> None:
        self._store, self._inner = store, inner

    def cancel(self) -> None:
        self._store.unwatch(self._inner)


def _result(answer: list[Answer] | Refused) -> list[Answer] | StoreError:
    if not isinstance(answer, Refused):
        return answer
    error = answer.error()
    assert isinstance(error, StoreError)
    return error
