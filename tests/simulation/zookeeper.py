"""ZooKeeper in the simulation: one tree, a session for each broker, and the links between them.

Requests and answers of a session are in order. A session without heartbeats for its timeout
expires, and its owner learns of that when it can reach the server again.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from penstock.metadata.errors import (
    AccessDenied,
    ConnectionLost,
    NoNode,
    NotConnected,
    SessionExpired,
    StoreError,
)
from penstock.metadata.store import (
    Answer,
    Change,
    Check,
    ChildrenChanged,
    DataChanged,
    Node,
    Operation,
    SessionState,
    Subscription,
)
from penstock.metadata.subscriptions import Subscriptions
from penstock.metadata.tree import Tree
from penstock.metadata.writes import Writes
from simulation.loop import PROCESS, Process
from simulation.network import Network, Pipe

HOST = "zookeeper"
T = TypeVar("T")


class ZooKeeper:
    """The server. Calls `written` with each transaction and its session."""

    def __init__(self, network: Network, tree: Tree, timeout_s: float) -> None:
        self.network, self.tree, self.timeout_s = network, tree, timeout_s
        self.heard_s: dict[int, float] = {}
        """Live sessions, with the time of their last heartbeat."""
        self.clients: dict[int, SimulatedStore] = {}
        self.denied: set[str] = set()
        """Nodes that no session may write."""
        self.writer = 0
        """The session whose request is being carried out."""
        tree.listeners.append(self._changed)

    def open_session(self) -> int:
        session = self.tree.open_session()
        self.hear(session)
        return session

    def hear(self, session: int) -> None:
        self.heard_s[session] = self.network.loop.time()

    def end(self, session: int) -> None:
        if self.heard_s.pop(session, None) is not None:
            self.writer = session
            self.tree.end_session(session)

    async def expire(self) -> None:
        """Expire sessions that were silent for too long; runs for ever."""
        loop = self.network.loop
        while True:
            await asyncio.sleep(self.timeout_s / 10)
            for session, heard_s in list(self.heard_s.items()):
                if loop.time() - heard_s > self.timeout_s:
                    self.end(session)

    def permit(self, multi: Iterable[Operation]) -> None:
        for index, each in enumerate(multi):
            if each.path in self.denied and not isinstance(each, Check):
                raise AccessDenied(each.path, index)

    def _changed(self, changes: Iterable[Change]) -> None:
        notified = list(changes)
        for client in list(self.clients.values()):
            client.notify(notified)


class SimulatedStore(Writes):
    """A broker's session, as `MetadataStore` has it."""

    def __init__(self, server: ZooKeeper) -> None:
        self._server, self._network = server, server.network
        self._process: Process = PROCESS.get()
        loop = self._network.loop
        context = self._process.context

        def call_soon(callback: Callable[..., object], *args: Any) -> None:
            loop.call_soon(callback, *args, context=context)

        self._watches: Subscriptions[Change] = Subscriptions(call_soon)
        self._session_watches: Subscriptions[SessionState] = Subscriptions(call_soon)
        self._session = 0
        self._state = SessionState.SUSPENDED
        self._closed = False
        self._answers: dict[asyncio.Future[Any], str] = {}
        self._heard_s = 0.0
        self._behind: Tree | None = None
        self._untold: list[Change] = []
        self._connect()

    def _connect(self) -> None:
        """A new connection; data in flight on the old one is lost."""
        host = self._process.host
        self._there = Pipe(self._network, (host, HOST))
        self._back = Pipe(self._network, (HOST, host))
        self._heard_s = self._network.loop.time()

    @property
    def session_id(self) -> int:
        return self._session

    @property
    def session_state(self) -> SessionState:
        return self._state

    async def run(self) -> None:
        """Send heartbeats to the server while the broker lives."""
        server, loop = self._server, self._network.loop
        while not self._closed:
            silent_s = loop.time() - self._heard_s
            if self._state is SessionState.CONNECTED and silent_s > server.timeout_s * 2 / 3:
                self._suspend()
            if self._state is SessionState.CONNECTED:
                there, back, session = self._there, self._back, self._session
                there.send(lambda b=back, s=session: self._beat(b, s))  # type: ignore[misc]
                await asyncio.sleep(server.timeout_s / 5)
            else:
                await self._try_to_connect()

    def _beat(self, back: Pipe, session: int) -> None:
        if session in self._server.heard_s:
            self._server.hear(session)
            back.send(self._heard)

    def _heard(self) -> None:
        # Received by the kernel of a paused process, which checks later whether it was in time.
        if not self._process.is_paused:
            self._heard_s = self._network.loop.time()

    def _suspend(self) -> None:
        self._there.is_closed = self._back.is_closed = True
        self._server.clients.pop(self._session, None)
        self._behind, self._untold = None, []  # reconnecting includes a sync
        self._become(SessionState.SUSPENDED)
        answers, self._answers = self._answers, {}
        for future, path in answers.items():
            if not future.done():
                future.set_exception(ConnectionLost(path))

    def lose_connection(self) -> None:
        """Its server fails: the session moves to another one, if there is one."""
        if self._state is SessionState.CONNECTED and not self._closed:
            self._suspend()

    def _become(self, state: SessionState) -> None:
        self._state = state
        self._session_watches.notify(state)

    async def _try_to_connect(self) -> None:
        self._there.is_closed = self._back.is_closed = True
        self._connect()
        there, back, known = self._there, self._back, self._session
        loop = self._network.loop
        outcome: asyncio.Future[int] = loop.create_future()

        def arrive() -> None:
            if known and known not in self._server.heard_s:
                back.send(lambda: answered(0))
                return
            session = known or self._server.open_session()
            self._server.hear(session)
            self._server.clients[session] = self
            back.send(lambda: answered(session))

        def answered(session: int) -> None:
            loop.call_soon(settle, session, context=self._process.context)

        def settle(session: int) -> None:
            if not outcome.done():
                outcome.set_result(session)

        there.send(arrive)
        try:
            async with asyncio.timeout(self._server.timeout_s / 3):
                session = await outcome
        except TimeoutError:
            return
        self._heard_s = loop.time()
        if session:
            self._session = session
            self._become(SessionState.CONNECTED)
        else:
            self._session = 0
            self._become(SessionState.EXPIRED)

    async def connected(self) -> None:
        while self._state is not SessionState.CONNECTED:
            await self._try_to_connect()

    @property
    def _tree(self) -> Tree:
        """The tree as the session's own server has it."""
        return self._behind or self._server.tree

    def fall_behind(self) -> None:
        """The session's server misses the next writes of others, as one of an ensemble may, until
        it executes a write of this session.
        """
        self._behind = Tree.in_memory(self._server.tree._clock)
        self._server.tree._connection.backup(self._behind._connection)

    def catch_up(self) -> None:
        self._behind = None
        unreported, self._untold = self._untold, []
        if unreported:
            self.notify(unreported)

    def notify(self, changes: Iterable[Change]) -> None:
        if self._behind is not None:
            self._untold += changes
            return

        def arrive() -> None:
            for change in changes:
                self._watches.notify(change)

        self._back.send(arrive)

    async def _ask(self, path: str, work: Callable[[], T]) -> T:
        return await self._answer(self._sent(path, work))

    async def _answer(self, outcome: "asyncio.Future[T]") -> T:
        try:
            return await outcome
        finally:
            self._answers.pop(outcome, None)

    def _sent(self, path: str, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._closed:
            raise SessionExpired(path)
        if self._state is not SessionState.CONNECTED:
            raise NotConnected(path) if self._session else SessionExpired(path)
        loop, server, session = self._network.loop, self._server, self._session
        outcome: asyncio.Future[T] = loop.create_future()
        self._answers[outcome] = path
        back = self._back

        def arrive() -> None:
            if session not in server.heard_s:
                back.send(lambda: answer(SessionExpired(path)))
                return
            server.hear(session)
            server.writer = session
            try:
                result: T | StoreError = work()
            except StoreError as error:
                result = error
            back.send(lambda: answer(result))

        def answer(result: T | StoreError) -> None:
            self._heard()
            loop.call_soon(settle, result, context=self._process.context)

        def settle(result: T | StoreError) -> None:
            if isinstance(result, SessionExpired) and back is self._back:
                self.lose_connection()  # the server closes it
            if self._answers.pop(outcome, None) is None or outcome.done():
                return
            if isinstance(result, StoreError):
                outcome.set_exception(result)
            else:
                outcome.set_result(result)

        self._there.send(arrive)
        return outcome

    # The protocol.

    def watch_session(self, on_state: Callable[[SessionState], None]) -> Subscription:
        return self._session_watches.add(on_state, SessionState)

    async def watch(
        self,
        on_change: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        parents = list(children)
        keys: list[Change] = [*map(DataChanged, data), *map(ChildrenChanged, parents)]
        listener = self._watches.add(on_change, keys)
        try:
            await self._ask("/", lambda: [self._tree.get(path) for path in parents])
        except BaseException:
            listener.cancel()
            raise
        return listener

    async def get(self, path: str) -> Node:
        return await self._ask(path, lambda: self._tree.get(path))

    async def exists(self, path: str) -> bool:
        return path in await self.get_many((path,))

    async def children(self, path: str) -> list[str]:
        return await self._ask(path, lambda: self._tree.children(path))

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        return await self._many(paths, Tree.get)

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        return await self._many(paths, Tree.children)

    async def _many(self, paths: Iterable[str], read: Callable[[Tree, str], T]) -> dict[str, T]:
        wanted = list(paths)

        def work() -> dict[str, T]:
            found = {}
            for path in wanted:
                try:
                    found[path] = read(self._tree, path)
                except NoNode:
                    continue
            return found

        return await self._ask("/", work)

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        """Each is a separate request, as on the wire: when the connection is lost, some may have
        arrived and been answered, and each has its own outcome.
        """
        session, tree = self._session, self._server.tree

        def sent(multi: Sequence[Operation]) -> asyncio.Future[list[Answer]]:
            def work() -> list[Answer]:
                self.catch_up()
                self._server.permit(multi)
                (outcome,) = tree.apply(session, [multi])
                if isinstance(outcome, StoreError):
                    raise outcome
                return outcome

            try:
                return self._sent(multi[0].path, work)
            except StoreError as error:  # nothing was sent
                refused: asyncio.Future[list[Answer]] = self._network.loop.create_future()
                self._network.loop.call_soon(refused.set_exception, error)
                return refused

        answers: list[list[Answer] | StoreError] = []
        for outcome in [sent(list(each)) for each in multis]:
            try:
                answered: list[Answer] = await self._answer(outcome)
                answers.append(answered)
            except StoreError as error:
                answers.append(error)
        return answers

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._server.clients.pop(self._session, None)
            if self._process.is_alive:
                session = self._session
                self._there.send(lambda: self._server.end(session))
