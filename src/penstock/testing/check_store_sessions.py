"""The contract of a metadata store, part two: sessions, watches and the order of writes."""

import asyncio

from penstock.metadata.errors import (
    BadVersion,
    EphemeralParent,
    NodeExists,
    NoNode,
    SessionExpired,
)
from penstock.metadata.store import (
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    MetadataStore,
    SessionState,
    Set,
)
from penstock.testing.store_ensemble import Ensemble, Inbox, raised


async def _ephemeral_nodes_are_deleted_with_their_session(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    assert store.session_id != other.session_id
    await store.create("/live")
    await store.create("/live/kept")
    await store.create("/live/0", b"x", ephemeral=True)
    await store.multi([Create("/live/n_", ephemeral=True, sequential=True)])
    await other.create("/live/1", ephemeral=True)
    assert (await other.get("/live/0")).ephemeral_owner == store.session_id
    assert (await other.get("/live/1")).ephemeral_owner == other.session_id
    assert (await raised(EphemeralParent, store.create("/live/0/x"))).path == "/live/0/x"
    inbox: Inbox[Change] = Inbox()
    await other.watch(inbox.put, data=["/live/0"])
    await store.close()
    await inbox.until(DataChanged("/live/0"))
    assert await other.children("/live") == ["1", "kept"]


async def _a_closed_session_raises(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    await store.close()
    await store.close()
    await raised(SessionExpired, store.get("/a"))
    await raised(SessionExpired, store.create("/b"))


async def _a_new_session_follows_an_expired_one(ensemble: Ensemble) -> None:
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


async def _watches_are_persistent(ensemble: Ensemble) -> None:
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
    await raised(NoNode, store.watch(inbox.put, children=["/a"]))


async def _a_watch_fires_after_the_write_is_visible(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    await store.create("/a")
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, children=["/a"])
    await other.multi([Create("/a/b"), Create("/a/c")])
    await inbox.until(ChildrenChanged("/a"))
    assert await store.children("/a") == ["b", "c"]


async def _a_cancelled_watch_does_not_fire(ensemble: Ensemble) -> None:
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


async def _a_failed_multi_fires_no_watch(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    inbox: Inbox[Change] = Inbox()
    await store.watch(inbox.put, data=["/a", "/fence"], children=["/"])
    await raised(NoNode, store.multi([Create("/a"), Check("/none", 0)]))
    await store.create("/fence")
    assert DataChanged("/a") not in await inbox.until(DataChanged("/fence"))


async def _a_new_session_sees_earlier_writes(ensemble: Ensemble) -> None:
    writer = await ensemble.connect()
    await writer.create("/a", b"0")
    for number in range(1, 6):
        await writer.set("/a", b"%d" % number)
        reader = await ensemble.connect()
        assert (await reader.get("/a")).data == b"%d" % number


async def _reads_after_an_own_write_see_all_writes_before_it(ensemble: Ensemble) -> None:
    store, other = await ensemble.connect(), await ensemble.connect()
    await store.create("/theirs", b"0")
    await other.create("/own")
    for number in range(1, 6):
        await store.set("/theirs", b"%d" % number)
        await other.set("/own", b"")
        assert (await other.get("/theirs")).data == b"%d" % number


async def _one_of_many_candidates_creates_a_node(ensemble: Ensemble) -> None:
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


SESSION_CHECKS = (
    _ephemeral_nodes_are_deleted_with_their_session,
    _a_closed_session_raises,
    _a_new_session_follows_an_expired_one,
    _watches_are_persistent,
    _a_watch_fires_after_the_write_is_visible,
    _a_cancelled_watch_does_not_fire,
    _a_failed_multi_fires_no_watch,
    _a_new_session_sees_earlier_writes,
    _reads_after_an_own_write_see_all_writes_before_it,
    _one_of_many_candidates_creates_a_node,
)
