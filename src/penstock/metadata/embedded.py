"""The metadata store inside the broker's process: no ZooKeeper, no set-up, one file."""

from collections.abc import Callable, Iterable, Sequence

from penstock.metadata.refusal import NoNode, SessionExpired, StoreError
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


class EmbeddedStore(Writes):
    """A session on a tree; see `MetadataStore`. Belongs to the thread that opened the tree.

    `call_soon` is that of the loop on which the callbacks are to run.
    """

    def __init__(self, tree: Tree, call_soon: Callable[..., object]) -> None:
        self._tree = tree
        self._session = tree.open_session()
        self._state = SessionState.CONNECTED
        self._watches: Subscriptions[Change] = Subscriptions(call_soon)
        self._session_watches: Subscriptions[SessionState] = Subscriptions(call_soon)
        tree.listeners.append(self._tell)

    @property
    def session_id(self) -> int:
        return self._session

    @property
    def session_state(self) -> SessionState:
        return self._state

    def watch_session(self, told: Callable[[SessionState], None]) -> Subscription:
        return self._session_watches.add(told, SessionState)

    async def watch(
        self,
        told: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        parents = list(children)
        for path in parents:
            await self.get(path)
        return self._watches.add(told, (*map(DataChanged, data), *map(ChildrenChanged, parents)))

    async def get(self, path: str) -> Node:
        self._check_open(path)
        return self._tree.get(path)

    async def exists(self, path: str) -> bool:
        return path in await self.get_many((path,))

    async def children(self, path: str) -> list[str]:
        self._check_open(path)
        return self._tree.children(path)

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        found = {}
        for path in paths:
            try:
                found[path] = await self.get(path)
            except NoNode:
                continue
        return found

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        found = {}
        for path in paths:
            try:
                found[path] = await self.children(path)
            except NoNode:
                continue
        return found

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        self._check_open("/")
        return self._tree.apply(self._session, multis)

    async def close(self) -> None:
        if self._state is SessionState.CONNECTED:
            self._state = SessionState.EXPIRED
            self._tree.end_session(self._session)
            self._tree.listeners.remove(self._tell)

    def expire(self) -> None:
        """What a ZooKeeper does to a session that was silent too long: for tests of expiry."""
        self._tree.end_session(self._session)
        self._session_watches.tell(SessionState.EXPIRED)
        self._session = self._tree.open_session()
        self._session_watches.tell(SessionState.CONNECTED)

    def _tell(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._watches.tell(change)

    def _check_open(self, path: str) -> None:
        if self._state is not SessionState.CONNECTED:
            raise SessionExpired(path)
