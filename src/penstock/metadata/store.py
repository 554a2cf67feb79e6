"""The protocol of a metadata store: a tree of small versioned nodes, as ZooKeeper has it.

Calls are awaitable because both implementations wait: ZooKeeper answers after milliseconds, and
the embedded store once its disk has the write, each from another thread. No record path calls the
store, so the `await` costs nothing that anyone would notice.

Reads answer from the server that the session is with, which may be a moment behind the others.
A session sees everything that was written, by whomever, before it became CONNECTED and before the
answer to its own last write; it never sees an older state than it has seen. What must not rest on
an old read is written as a multi that checks versions.

Watches are lasting subscriptions that carry no data: a change says "read again". That can be kept
on ZooKeeper, whose own watches fire once (arm anew, then tell), and changes in quick succession
may be told as one. A change is never missed while the session lives. Whoever was SUSPENDED or
EXPIRED reads everything again once CONNECTED: subscriptions stay, but what happened meanwhile may
go untold.

The session mends itself. While it is not CONNECTED, operations fail at once (`StoreUnavailable`)
and nothing is kept to be sent later. Nothing is retried either: of what was on its way when the
connection went nobody knows whether it took place (`ConnectionLost`), and only its caller knows
whether it may be done twice. A write in doubt takes place, if ever, before anything that is read
once the session is CONNECTED again. After EXPIRED every ephemeral node is gone or about to go, and
its owner registers it anew once CONNECTED.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

import msgspec

from penstock.metadata.refusal import StoreError

ANY_VERSION = -1
"""As the expected version: whatever it is."""

NO_SESSION = 0
"""The owner of a node that outlives its session."""


class Node(msgspec.Struct, frozen=True):
    """A node as it was read. An empty one holds None, which ZooKeeper tells from b""."""

    path: str
    data: bytes | None
    version: int
    """Number of times that the data was set since the creation."""
    created_zxid: int
    """The transaction that made it; rises over the whole tree, so that it serves as an epoch."""
    modified_zxid: int
    created_ms: int
    ephemeral_owner: int = NO_SESSION


class Check(msgspec.Struct, frozen=True):
    """Go on only if the node is there at this version."""

    path: str
    version: int


class Create(msgspec.Struct, frozen=True):
    """A new node, whose parent is there. Answered with its path.

    An ephemeral one goes with its session and has no children. The path of a sequential one is
    continued with ten digits, greater each time under the same parent.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class Set(msgspec.Struct, frozen=True):
    """Replace the data, if the version is as expected. Answered with the node as it is then."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True):
    """Remove a node without children, if the version is as expected."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Check | Create | Set | Delete
Answer: TypeAlias = str | Node | None


class DataChanged(msgspec.Struct, frozen=True):
    """The node was created, set or deleted."""

    path: str


class ChildrenChanged(msgspec.Struct, frozen=True):
    """A child came or went, or the node itself was deleted."""

    path: str


Change: TypeAlias = DataChanged | ChildrenChanged


class SessionState(Enum):
    """How the store can be reached.

    CONNECTED -> SUSPENDED -> CONNECTED in the same session, or
    CONNECTED -> SUSPENDED -> EXPIRED -> CONNECTED in a session of another id.
    Nobody knows of an expiry before the store can be reached again: SUSPENDED lasts until then.
    """

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


class Subscription(Protocol):
    """Nothing more is told after `cancel()`, not even what was on its way."""

    def cancel(self) -> None: ...


class MetadataStore(Protocol):
    """One session on the tree, for one event loop. Callbacks run on that loop, never in a call."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_state(self) -> SessionState: ...

    def watch_session(self, told: Callable[[SessionState], None]) -> Subscription: ...

    async def watch(
        self,
        told: Callable[[Change], None],
        *,
        data: Iterable[str] = (),
        children: Iterable[str] = (),
    ) -> Subscription:
        """Be told of every change after this call returns, own ones included.

        Data may be watched before the node is there; its creation is a change. Whose children are
        watched must be there (`NoNode`), and is to be watched anew after its deletion.
        """
        ...

    async def get(self, path: str) -> Node: ...

    async def exists(self, path: str) -> bool: ...

    async def children(self, path: str) -> list[str]:
        """Names, not paths; sorted."""
        ...

    async def get_many(self, paths: Iterable[str]) -> dict[str, Node]:
        """Those that are there, by path, in one round trip; each as of its own moment."""
        ...

    async def children_many(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """As `get_many`."""
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
        """All or none, as one transaction. The error is that of the operation which failed,
        with its `index`.
        """
        ...

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        """Several multis in one round trip, in order. Each holds or fails on its own."""
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes go at once."""
        ...
