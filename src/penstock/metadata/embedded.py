"""The metadata store inside the broker's process: one file, no ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from penstock.clock import Clock
from penstock.metadata.errors import NoNode, SessionExpired, StoreError
from penstock.metadata.store import (
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
from penstock.metadata.tree import Tree
from penstock.metadata.writes import Writes

Found = TypeVar("Found")


@asynccontextmanager
async def open_embedded(path: Path, clock: Clock) -> AsyncIterator["EmbeddedStore"]:
    """The store in this file. A thread owns the file, so that syncs do not block the loop."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "metadata-store") as thread:
        opening = thread.submit(Tree.open, path, clock)
        try:
            tree = await asyncio.shield(asyncio.wrap_future(opening))
            yield EmbeddedStore(tree, loop.call_soon, thread)
        finally:
            # After the last write. A caller that is cancelled may leave while the file is opened.
            thread.submit(lambda: opening.result().close()).result()


class EmbeddedStore(Writes):
    """A session on a tree; see `MetadataStore`.

    `call_soon` is that of the loop on which callbacks run. The tree belongs to the single `thread`
    of the executor that opened it. Without one, it belongs to the loop's thread, and the store
    answers without yielding to the loop.
    """

    def __init__(
        self, tree: Tree, call_soon: Callable[..., object], thread: Executor | None = None
    ) -> None:
        self._tree, self._thread = tree, thread
        self._session = tree.open_session()
        self._state = SessionState.CONNECTED
        self._watches: Subscriptions[Change] = Subscriptions(call_soon)
        self._session_watches: Subscriptions[SessionState] = Subscriptions(call_soon)
        self._listener: Callable[[Iterable[Change]], object] = self._notify
        if thread is not None:
            loop = asyncio.get_running_loop()
            self._listener = lambda changes: loop.call_soon_threadsafe(self._notify, changes)
        tree.listeners.append(self._listener)

    @property
    def session_id(self) -> int:
        return self._session

    @property
    def session_state(self) -> SessionState:
        return self._state

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
        for path in parents:
            await self.get(path)
        return self._watches.add(
            on_change, (*map(DataChanged, data), *map(ChildrenChanged, parents))
        )

    async def get(self, path: str) -> Node:
        self._check_open(path)
        return await self._do(partial(self._tree.get, path))

    async def exists(self, path: str) -> bool:
        return path in await self.get_many((path,))

    async def children(self, path: str) -> list[str]:
        self._check_open(path)
        return await self._do(partial(self._tree.children, path))

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        self._check_open("/")
        return await self._do(partial(_existing, self._tree.get, list(paths)))

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        self._check_open("/")
        return await self._do(partial(_existing, self._tree.children, list(paths)))

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        self._check_open("/")
        return await self._do(partial(self._tree.apply, self._session, list(multis)))

    async def close(self) -> None:
        if self._state is SessionState.CONNECTED:
            self._state = SessionState.EXPIRED
            await self._do(partial(self._tree.end_session, self._session))
            self._tree.listeners.remove(self._listener)

    async def expire(self) -> None:
        """Expire the session, as ZooKeeper does after its timeout; for tests."""
        await self._do(partial(self._tree.end_session, self._session))
        self._session_watches.notify(SessionState.EXPIRED)
        self._session = await self._do(self._tree.open_session)
        self._session_watches.notify(SessionState.CONNECTED)

    async def _do(self, call: Callable[[], Found]) -> Found:
        """Run the call on the tree's thread. It may complete even if the caller is cancelled."""
        if self._thread is None:
            return call()
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _notify(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._watches.notify(change)

    def _check_open(self, path: str) -> None:
        if self._state is not SessionState.CONNECTED:
            raise SessionExpired(path)


def _existing(read: Callable[[str], Found], paths: Iterable[str]) -> dict[str, Found]:
    found = {}
    for path in paths:
        try:
            found[path] = read(path)
        except NoNode:
            continue
    return found
