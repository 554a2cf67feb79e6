"""The metadata store on ZooKeeper, used by the brokers of a cluster. See `MetadataStore`.

The session's thread only passes on what it reads; everything else happens on the loop, in
ZooKeeper's order. A connection is reported as CONNECTED only when every watch is set again and the
server has caught up with its leader. A caller that then reads everything sees at least what
happened before, and is notified of what happens after.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kazoo.protocol.states import EventType, WatchedEvent

from penstock.config.connect_string import ConnectString
from penstock.metadata.errors import (
    DataTooLarge,
    NoNode,
    NotConnected,
    SessionExpired,
    StoreError,
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
from penstock.metadata.subscriptions import Subscriptions
from penstock.metadata.writes import Writes
from penstock.metadata.zookeeper.pipeline import RequestPipeline
from penstock.metadata.zookeeper.session import (
    OPEN,
    Request,
    SessionKey,
    SessionThread,
    StoreSecurity,
)
from penstock.metadata.zookeeper.session_file import SessionFile
from penstock.metadata.zookeeper.translation import Chroot, is_too_large, node, store_error

logger = logging.getLogger(__name__)


class ZooKeeperStore(Writes):
    """A session on an ensemble, for the running loop. Made by `open_store`.

    It begins SUSPENDED; `start` returns at once, and the session's thread connects.
    """

    def __init__(
        self,
        servers: ConnectString,
        *,
        session_timeout_ms: int,
        max_in_flight: int,
        session_file: SessionFile | None = None,
        security: StoreSecurity = OPEN,
        protects: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._servers, self._chroot = servers, Chroot(servers.chroot, protects=protects)
        self._file = session_file
        self._state = SessionState.SUSPENDED
        self._session_id = NO_SESSION
        self._closed = False
        self._watches: Subscriptions[Change] = Subscriptions(self._loop.call_soon)
        self._session_watches: Subscriptions[SessionState] = Subscriptions(self._loop.call_soon)
        self._session = SessionThread(
            servers, session_timeout_ms, _Bridge(self, session_file), security=security
        )
        self._pipeline = RequestPipeline(self._session, self.post, max_in_flight)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def refusal(self) -> str:
        """Why the last connection failed, if the login or TLS was the cause."""
        return self._session.refusal

    def start(self) -> None:
        self._session.start_async()

    def watch_session(self, on_state: Callable[[SessionState], None]) -> Subscription:
        return self._session_watches.add(on_state, SessionState)

    async def watch(
        self,
        on_change: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        keys: list[Change] = [*map(DataChanged, data), *map(ChildrenChanged, children)]
        # Before the answers: a watch may fire right after one of them.
        listener = self._watches.add(on_change, keys)
        try:
            answers = await self._ask([self._watching(key) for key in keys])
            for key, answer in zip(keys, answers, strict=True):
                _checked(answer, key.path)
        except BaseException:
            listener.cancel()
            raise
        return listener

    async def get(self, path: str) -> Node:
        (answer,) = await self._ask((self._chroot.get(path),))
        data, stat = _checked(answer, path)
        return node(path, data, stat)

    async def exists(self, path: str) -> bool:
        (answer,) = await self._ask((self._chroot.exists(path),))
        return _checked(answer, path) is not None

    async def children(self, path: str) -> list[str]:
        (answer,) = await self._ask((self._chroot.children(path),))
        return sorted(_checked(answer, path))

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        found = await self._found(paths, self._chroot.get)
        return {path: node(path, *answer) for path, answer in found.items()}

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        found = await self._found(paths, self._chroot.children)
        return {path: sorted(names) for path, names in found.items()}

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        wanted = list(multis)
        sent = [each for each in wanted if each and not is_too_large(each)]
        answers = iter(await self._ask([self._chroot.multi(each) for each in sent]))
        return [
            DataTooLarge(each[0].path)
            if is_too_large(each)
            else self._written(each, next(answers) if each else [])
            for each in wanted
        ]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed, self._state = True, SessionState.EXPIRED
        self._pipeline.lose()
        await asyncio.to_thread(self._end)

    def post(self, function: Callable[..., None], *args: object) -> None:
        """Call the function on the loop; used by the session's thread."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return  # the loop is closed

    def connection_opened(self, connection: int, session_id: int) -> None:
        if self._closed:
            return
        self._pipeline.connection = connection
        for key in self._watches.watched():
            self._pipeline.send(self._watching(key), _ignored, urgent=True)
        # The last request: answers come in order, so all watches are set when it is answered.
        ready = partial(self._caught_up, connection, session_id)
        self._pipeline.send(self._chroot.sync(), ready, urgent=True)

    def connection_lost(self) -> None:
        self._pipeline.lose()
        if self._state is SessionState.CONNECTED:
            logger.warning("lost the connection to ZooKeeper at %s", self._servers)
            self._become(SessionState.SUSPENDED)

    def session_expired(self) -> None:
        self._pipeline.lose()
        if not self._closed and self._state is not SessionState.EXPIRED:
            logger.warning("the session %#x with ZooKeeper has expired", self._session_id)
            self._become(SessionState.EXPIRED)

    def _caught_up(self, connection: int, session_id: int, _answer: object) -> None:
        if self._pipeline.connection != connection:
            return  # lost already
        self._session_id = session_id
        logger.info("connected to ZooKeeper at %s, session %#x", self._servers, session_id)
        self._become(SessionState.CONNECTED)

    def _become(self, state: SessionState) -> None:
        self._state = state
        self._session_watches.notify(state)

    def _watching(self, key: Change) -> Request:
        return self._chroot.watch(
            key, self._data_fired if isinstance(key, DataChanged) else self._children_fired
        )

    # kazoo keeps one callback per path and kind, so the callbacks must be equal each time.
    def _data_fired(self, event: WatchedEvent) -> None:
        if event.type != EventType.NONE:
            self.post(self._fired, DataChanged(self._chroot.relative(event.path)))

    def _children_fired(self, event: WatchedEvent) -> None:
        if event.type != EventType.NONE:
            self.post(self._fired, ChildrenChanged(self._chroot.relative(event.path)))

    def _fired(self, key: Change) -> None:
        """ZooKeeper's watches fire once: set the watch again, then notify, to miss no change."""
        if key in self._watches:
            self._pipeline.send(self._watching(key), partial(self._rearmed, key), urgent=True)

    def _rearmed(self, key: Change, answer: object) -> None:
        if isinstance(answer, Exception) and not isinstance(store_error(answer, key.path), NoNode):
            return  # no connection; once there is one, callers read everything again
        self._watches.notify(key)

    async def _found(
        self, paths: Iterable[str], request: Callable[[str], Request]
    ) -> dict[str, Any]:
        wanted = list(paths)
        found = {}
        answers = await self._ask([request(path) for path in wanted])
        for path, answer in zip(wanted, answers, strict=True):
            try:
                found[path] = _checked(answer, path)
            except NoNode:
                continue
        return found

    async def _write(self, operation: Operation) -> Answer:
        if is_too_large((operation,)):
            raise DataTooLarge(operation.path)
        (answer,) = await self._ask((self._chroot.write(operation),))
        return self._chroot.written(operation, _checked(answer, operation.path))

    def _written(self, operations: Sequence[Operation], answer: Any) -> list[Answer] | StoreError:
        if isinstance(answer, Exception):
            return store_error(answer, operations[0].path)
        return self._chroot.all_written(operations, answer)

    async def _ask(self, requests: Sequence[Request]) -> list[object]:
        """The answers to all requests, in order. An error is returned as an answer."""
        self._check_connected()
        waiting = [self._loop.create_future() for _ in requests]
        pending = [
            self._pipeline.send(request, partial(_resolve, future))
            for request, future in zip(requests, waiting, strict=True)
        ]
        try:
            return [await future for future in waiting]
        finally:
            for each in pending:
                each.abandoned = True  # after a cancellation, what still waits is not sent

    def _check_connected(self) -> None:
        match self._state:
            case SessionState.CONNECTED:
                return
            case SessionState.SUSPENDED:
                raise NotConnected(self._servers.chroot or "/")
            case SessionState.EXPIRED:
                raise SessionExpired(self._servers.chroot or "/")

    def _end(self) -> None:
        # If the session could not be closed, the next start ends it by its key.
        if self._session.end() and self._file is not None:
            self._file.delete()


class _Bridge:
    """Passes events from the session's thread to the loop, in order."""

    def __init__(self, store: ZooKeeperStore, file: SessionFile | None) -> None:
        self._store, self._file = store, file

    def connected(self, connection: int, key: SessionKey) -> None:
        # Here, so that the key is on disk before the loop can register anything under it.
        if self._file is not None:
            self._file.write(key)
        self._store.post(self._store.connection_opened, connection, key.id)

    def disconnected(self) -> None:
        self._store.post(self._store.connection_lost)

    def expired(self) -> None:
        self._store.post(self._store.session_expired)


def _checked(answer: Any, path: str) -> Any:
    if isinstance(answer, Exception):
        raise store_error(answer, path)
    return answer


def _resolve(future: "asyncio.Future[object]", answer: object) -> None:
    if not future.done():
        future.set_result(answer)


def _ignored(_answer: object) -> None: ...
