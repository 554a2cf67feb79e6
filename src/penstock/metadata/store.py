"""The protocol of a metadata store: a tree of small versioned nodes, as in ZooKeeper.

Calls are awaitable because both implementations wait: ZooKeeper answers after milliseconds, and
the embedded store after its disk has the write, each on another thread. No produce or fetch path
calls the store, so the cost of `await` does not matter.

Reads answer from the server of the session, which may be a moment behind the others. A session
sees everything that was written, by any session, before it became CONNECTED and before the answer
to its own last write. It never sees an older state than it has seen. A decision that must not rest
on an old read is written as a multi that checks versions.

Watches are permanent subscriptions without data: a change means "read again". ZooKeeper can provide
that, although its own watches fire once (set the watch again, then notify). Several quick changes
may be notified as one, but no change is missed while the session lives. After SUSPENDED or EXPIRED,
read everything again once CONNECTED: subscriptions stay, but changes in between are not notified.

The session restores itself. While it is not CONNECTED, operations fail at once
(`StoreUnavailable`); nothing is queued, and nothing is retried. When the connection is lost, the
outcome of operations in flight is unknown (`ConnectionLost`), and only the caller knows whether it
may repeat one. A write with an unknown outcome takes place, if ever, before any read after the
session is CONNECTED again. After EXPIRED, every ephemeral node is deleted or about to be; its owner
creates it again once CONNECTED.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

import msgspec

from penstock.metadata.errors import StoreError

ANY_VERSION = -1
"""As the expected version: any version."""

NO_SESSION = 0
"""The owner of a persistent node."""


class Node(msgspec.Struct, frozen=True):
    """A node as it was read. Empty data is None, which ZooKeeper distinguishes from b""."""

    path: str
    data: bytes | None
    version: int
    """How often the data was set since the creation."""
    created_zxid: int
    """The transaction that created it. It grows over the whole tree, so it serves as an epoch."""
    modified_zxid: int
    created_ms: int
    ephemeral_owner: int = NO_SESSION


class Check(msgspec.Struct, frozen=True, tag=True):
    """The multi fails unless the node exists at this version."""

    path: str
    version: int


class Create(msgspec.Struct, frozen=True, tag=True):
    """Create a node under an existing parent. Answered with its path.

    An ephemeral node is deleted with its session, and has no children. The path of a sequential
    node is extended by ten digits, which grow under the same parent.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class Set(msgspec.Struct, frozen=True, tag=True):
    """Replace the data if the version is as expected. Answered with the new node."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True, tag=True):
    """Delete a node without children if the version is as expected."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Check | Create | Set | Delete
Answer: TypeAlias = str | Node | None


class DataChanged(msgspec.Struct, frozen=True, tag=True):
    """The node was created, set or deleted."""

    path: str


class ChildrenChanged(msgspec.Struct, frozen=True, tag=True):
    """A child was created or deleted, or the node itself was deleted."""

    path: str


Change: TypeAlias = DataChanged | ChildrenChanged


class SessionState(Enum):
    """The state of the session.

    CONNECTED -> SUSPENDED -> CONNECTED in the same session, or
    CONNECTED -> SUSPENDED -> EXPIRED -> CONNECTED in a session of another id.
    An expiry is known only when the store can be reached again: SUSPENDED lasts until then.
    """

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


class Subscription(Protocol):
    """No callback runs after `cancel()`, not even one that was already scheduled."""

    def cancel(self) -> None: ...


class MetadataStore(Protocol):
    """One session on the tree, for one event loop. Callbacks run on that loop, never in a call."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_state(self) -> SessionState: ...

    def watch_session(self, on_state: Callable[[SessionState], None]) -> Subscription: ...

    async def watch(
        self,
        on_change: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        """Call back at every change after this call returns, including own changes.

        Data may be watched before the node exists; its creation is a change. A node whose children
        are watched must exist (`NoNode`), and must be watched again after its deletion.
        """
        ...

    async def get(self, path: str) -> Node: ...

    async def exists(self, path: str) -> bool: ...

    async def children(self, path: str) -> list[str]:
        """Names, not paths; sorted."""
        ...

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        """The existing nodes by path, in one round trip; each as of its own moment."""
        ...

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """The children of the existing nodes by path; see `get_many`."""
        ...

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str: ...

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Node: ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    async def multi(self, operations: Sequence[Operation]) -> list[Answer]:
        """All or none, as one transaction. Raises the error of the failed operation, with its
        `index`.
        """
        ...

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        """Several multis in one round trip, in order. Each succeeds or fails on its own."""
        ...

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted at once."""
        ...
