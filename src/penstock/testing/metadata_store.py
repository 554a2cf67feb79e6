"""The contract of `penstock.metadata.store.MetadataStore`: run it on every implementation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

from penstock.metadata.refusal import (
    BadVersion,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreError,
)
from penstock.metadata.store import (
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    Delete,
    MetadataStore,
    SessionState,
    Set,
)

PATIENCE_S = 10.0
"""For news to arrive; a store that keeps its contract needs a small part of it."""

Item = TypeVar("Item")
Refused = TypeVar("Refused", bound=StoreError)


class Ensemble(Protocol):
    """A tree, empty at first, on which sessions can be opened. It closes what was opened."""

    async def connect(self) -> MetadataStore: ...

    async def expire(self, store: MetadataStore) -> None:
        """End the session as a store does whose client was silent too long."""
        ...


def check_metadata_store(make: Callable[[], AbstractAsyncContextManager[Ensemble]]) -> None:
    """`make` gives an ensemble with an empty tree, anew at each call."""

    async def run(check: Callable[[Ensemble], Awaitable[None]]) -> None:
        async with make() as ensemble:
            await check(ensemble)

    for check in CHECKS:
        asyncio.run(run(check))


class Inbox(Generic[Item]):
    """Collects what a subscription tells."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self.put = self._items.put_nowait

    async def until(self, wanted: Item) -> list[Item]:
        """What came up to `wanted`, which is awaited."""
        came: list[Item] = []
        async with asyncio.timeout(PATIENCE_S):
            while not came or came[-1] != wanted:
                came.append(await self._items.get())
        return came


async def refusal(kind: type[Refused], attempt: Awaitable[object]) -> Refused:
    """The error that `attempt` must raise."""
    try:
        await attempt
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


async def _a_created_node_is_read_back(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    assert await store.create("/a", b"data") == "/a"
    node = await store.get("/a")
    assert (node.path, node.data, node.version, node.ephemeral_owner) == ("/a", b"data", 0, 0)
    assert node.created_zxid == node.modified_zxid > 0
    assert node.created_ms > 0
    assert await store.exists("/a")
    assert not await store.exists("/b")


async def _null_is_not_empty_data(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/null")
    await store.create("/empty", b"")
    assert (await store.get("/null")).data is None
    assert (await store.get("/empty")).data == b""
    assert (await store.set("/empty", None)).data is None
    assert (await store.get("/empty")).data is None


async def _what_is_not_there_is_refused(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for attempt in (
        store.get("/a"),
        store.children("/a"),
        store.set("/a", b""),
        store.delete("/a"),
        store.multi([Check("/a", 0)]),
    ):
        assert (await refusal(NoNode, attempt)).path == "/a"
    assert (await refusal(NoNode, store.create("/a/b"))).path == "/a/b"


async def _a_path_is_created_once(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a", b"first")
    error = await refusal(NodeExists, store.create("/a", b"second"))
    assert (error.path, error.index) == ("/a", None)
    assert (await store.get("/a")).data == b"first"


async def _children_are_names_in_order(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for path in ("/a", "/a/z", "/a/b", "/a/b/c", "/a-b"):
        await store.create(path)
    assert await store.children("/a") == ["b", "z"]
    assert await store.children("/a/z") == []
    assert {"a", "a-b"} <= set(await store.children("/"))


async def _each_set_raises_the_version(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a", b"0")
    first = await store.get("/a")
    second = await store.set("/a", b"1", version=0)
    assert second == await store.get("/a")
    assert (second.data, second.version, second.created_zxid) == (b"1", 1, first.created_zxid)
    assert second.modified_zxid > first.modified_zxid
    assert (await store.set("/a", b"2")).version == 2
    await refusal(BadVersion, store.set("/a", b"3", version=1))
    assert (await store.get("/a")).data == b"2"


async def _a_deleted_node_starts_over(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    before = await store.set("/a", b"1")
    await refusal(BadVersion, store.delete("/a", version=0))
    await store.delete("/a", version=1)
    assert not await store.exists("/a")
    await store.create("/a")
    after = await store.get("/a")
    assert after.version == 0
    assert after.created_zxid > before.modified_zxid


async def _a_parent_is_not_deleted(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    await store.create("/a/b")
    assert (await refusal(NotEmpty, store.delete("/a"))).path == "/a"
    await store.delete("/a/b")
    await store.delete("/a")


async def _sequential_nodes_are_numbered(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    first = await store.create("/a/n_", b"x", sequential=True)
    second = await store.create("/a/n_", sequential=True)
    assert (first, second) == ("/a/n_0000000000", "/a/n_0000000001")
    assert (await store.get(first)).data == b"x"
    await store.delete(second)
    assert await store.create("/a/n_", sequential=True) > second
    assert (await store.create("/a/", sequential=True)).startswith("/a/00000000")


async def _a_multi_is_all_or_nothing(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/epoch", b"1")
    await store.create("/old")
    answers = await store.multi(
        [
            Check("/epoch", 0),
            Create("/a", b"1"),
            Create("/a/b"),
            Set("/a", b"2", 0),
            Delete("/old"),
            Create("/a/n_", sequential=True),
        ]
    )
    node = await store.get("/a")
    assert answers == [None, "/a", "/a/b", node, None, "/a/n_0000000001"]
    assert (node.data, node.version) == (b"2", 1)
    assert node.created_zxid == node.modified_zxid
    assert not await store.exists("/old")

    error = await refusal(
        BadVersion, store.multi([Create("/c"), Set("/a", b"3"), Check("/epoch", 7), Delete("/a/b")])
    )
    assert (error.path, error.index) == ("/epoch", 2)
    assert "/epoch" in str(error)
    assert not await store.exists("/c")
    assert await store.get("/a") == node
    assert await store.multi([]) == []


async def _a_multi_sees_its_own_writes(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    error = await refusal(NodeExists, store.multi([Create("/a/b"), Create("/a/b")]))
    assert (error.path, error.index) == ("/a/b", 1)
    await store.multi([Create("/a/b"), Delete("/a/b"), Delete("/a"), Create("/a", b"new")])
    assert (await store.get("/a")).data == b"new"
    assert await store.create("/a/n_", sequential=True) == "/a/n_0000000000"
    parent = await refusal(NotEmpty, store.multi([Create("/p"), Create("/p/q"), Delete("/p")]))
    assert parent.index == 2


async def _batches_leave_out_what_is_missing(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for path in ("/a", "/a/b", "/c"):
        await store.create(path, path.encode())
    found = await store.get_many(["/c", "/none", "/a"])
    assert {path: node.data for path, node in found.items()} == {"/c": b"/c", "/a": b"/a"}
    assert await store.children_many(["/a", "/none", "/c"]) == {"/a": ["b"], "/c": []}


async def _each_multi_of_a_batch_stands_alone(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/epoch")
    done = await store.multi_many(
        [
            [Check("/epoch", 0), Create("/a")],
            [Create("/b"), Check("/epoch", 1)],
            [Create("/a/c")],
        ]
    )
    assert [done[0], done[2]] == [[None, "/a"], ["/a/c"]]
    assert isinstance(done[1], BadVersion)
    assert done[1].index == 1
    assert not await store.exists("/b")
    made, later = await store.get("/a"), await store.get("/a/c")
    assert later.created_zxid > made.created_zxid


async def _ephemeral_nodes_go_with_their_session(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    assert store.session_id != other.session_id
    await store.create("/live")
    await store.create("/live/kept")
    await store.create("/live/0", b"x", ephemeral=True)
    await store.multi([Create("/live/n_", ephemeral=True, sequential=True)])
    await other.create("/live/1", ephemeral=True)
    assert (await other.get("/live/0")).ephemeral_owner == store.session_id
    assert (await other.get("/live/1")).ephemeral_owner == other.session_id
    assert (await refusal(EphemeralParent, store.create("/live/0/x"))).path == "/live/0/x"
    inbox: Inbox[Change] = Inbox()
    await other.watch(inbox.put, data=["/live/0"])
    await store.close()
    await inbox.until(DataChanged("/live/0"))
    assert await other.children("/live") == ["1", "kept"]


async def _a_closed_session_answers_no_more(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    await store.close()
    await store.close()
    await refusal(SessionExpired, store.get("/a"))
    await refusal(SessionExpired, store.create("/b"))


async def _an_expired_session_is_followed_by_another(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    states: Inbox[SessionState] = Inbox()
    store.watch_session(states.put)
    assert store.session_state is SessionState.CONNECTED
    before = store.session_id
    await store.create("/mine", ephemeral=True)
    changes: Inbox[Change] = Inbox()
    await store.watch(changes.put, data=["/later"])
    gone: Inbox[Change] = Inbox()
    await other.watch(gone.put, data=["/mine"])

    await ensemble.expire(store)
    await gone.until(DataChanged("/mine"))
    await states.until(SessionState.EXPIRED)
    await states.until(SessionState.CONNECTED)
    assert store.session_id != before
    assert not await store.exists("/mine")
    await store.create("/mine", ephemeral=True)
    assert (await store.get("/mine")).ephemeral_owner == store.session_id
    await other.create("/later")
    await changes.until(DataChanged("/later"))


async def _watches_last(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    await store.create("/a")
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, data=["/a", "/a/b"], children=["/a"])
    for writer in (store, other):
        await writer.create("/a/b")
        await inbox.until(DataChanged("/a/b"))
        await writer.set("/a/b", b"1")
        await inbox.until(DataChanged("/a/b"))
        await writer.delete("/a/b")
        await inbox.until(DataChanged("/a/b"))
    await other.create("/a/c")
    await inbox.until(ChildrenChanged("/a"))
    await other.delete("/a/c")
    await inbox.until(ChildrenChanged("/a"))
    await other.delete("/a")
    await inbox.until(DataChanged("/a"))
    await refusal(NoNode, store.watch(inbox.put, children=["/a"]))


async def _a_watch_tells_after_the_write_is_visible(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    await store.create("/a")
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, children=["/a"])
    await other.multi([Create("/a/b"), Create("/a/c")])
    await inbox.until(ChildrenChanged("/a"))
    assert await store.children("/a") == ["b", "c"]


async def _a_cancelled_watch_is_silent(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    cancelled: list[object] = []
    first = await store.watch(cancelled.append, data=["/a", "/b"])
    session = store.watch_session(cancelled.append)
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, data=["/a", "/b"])
    first.cancel()
    first.cancel()
    session.cancel()
    await store.create("/a")
    await store.create("/b")
    await inbox.until(DataChanged("/b"))
    states: Inbox[SessionState] = Inbox()
    store.watch_session(states.put)
    await ensemble.expire(store)
    await states.until(SessionState.CONNECTED)
    assert cancelled == []


async def _a_failed_multi_is_not_told(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, data=["/a", "/fence"], children=["/"])
    await refusal(NoNode, store.multi([Create("/a"), Check("/none", 0)]))
    await store.create("/fence")
    assert DataChanged("/a") not in await inbox.until(DataChanged("/fence"))


async def _a_session_begins_with_what_was_written(ensemble: Ensemble) -> None:
    writer = await ensemble.connect()
    await writer.create("/a", b"0")
    for number in range(1, 6):
        await writer.set("/a", b"%d" % number)
        reader = await ensemble.connect()
        assert (await reader.get("/a")).data == b"%d" % number


async def _an_own_write_is_behind_all_before_it(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    await store.create("/theirs", b"0")
    await other.create("/own")
    for number in range(1, 6):
        await store.set("/theirs", b"%d" % number)
        await other.set("/own", b"")
        assert (await other.get("/theirs")).data == b"%d" % number


async def _one_of_many_wins_a_node(ensemble: Ensemble) -> None:
    stores = [await ensemble.connect()]
    await stores[0].create("/epoch", b"0")
    stores += [await ensemble.connect() for _ in range(2)]
    won: list[int] = []

    async def run_for_controller(store: MetadataStore) -> None:
        epoch = await store.get("/epoch")
        number = int(epoch.data or b"") + 1
        try:
            await store.multi(
                [
                    Create("/controller", ephemeral=True),
                    Set("/epoch", b"%d" % number, epoch.version),
                ]
            )
        except (NodeExists, BadVersion):
            return
        won.append(store.session_id)

    async with asyncio.TaskGroup() as tasks:
        for store in stores:
            tasks.create_task(run_for_controller(store))
    assert len(won) == 1
    assert (await stores[0].get("/controller")).ephemeral_owner == won[0]
    assert (await stores[0].get("/epoch")).data == b"1"


CHECKS = (
    _a_created_node_is_read_back,
    _null_is_not_empty_data,
    _what_is_not_there_is_refused,
    _a_path_is_created_once,
    _children_are_names_in_order,
    _each_set_raises_the_version,
    _a_deleted_node_starts_over,
    _a_parent_is_not_deleted,
    _sequential_nodes_are_numbered,
    _a_multi_is_all_or_nothing,
    _a_multi_sees_its_own_writes,
    _batches_leave_out_what_is_missing,
    _each_multi_of_a_batch_stands_alone,
    _ephemeral_nodes_go_with_their_session,
    _a_closed_session_answers_no_more,
    _an_expired_session_is_followed_by_another,
    _watches_last,
    _a_watch_tells_after_the_write_is_visible,
    _a_cancelled_watch_is_silent,
    _a_failed_multi_is_not_told,
    _a_session_begins_with_what_was_written,
    _an_own_write_is_behind_all_before_it,
    _one_of_many_wins_a_node,
)
