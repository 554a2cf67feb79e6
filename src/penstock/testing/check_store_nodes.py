"""The contract of a metadata store, part one: nodes, versions and multis."""

from penstock.metadata.errors import BadVersion, NodeExists, NoNode, NotEmpty
from penstock.metadata.store import Check, Create, Delete, Set
from penstock.testing.store_ensemble import Ensemble, raised


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


async def _a_missing_node_is_an_error(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for attempt in (
        store.get("/a"),
        store.children("/a"),
        store.set("/a", b""),
        store.delete("/a"),
        store.multi([Check("/a", 0)]),
    ):
        assert (await raised(NoNode, attempt)).path == "/a"
    assert (await raised(NoNode, store.create("/a/b"))).path == "/a/b"


async def _a_path_is_created_once(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a", b"first")
    error = await raised(NodeExists, store.create("/a", b"second"))
    assert (error.path, error.index) == ("/a", None)
    assert (await store.get("/a")).data == b"first"


async def _children_are_sorted_names(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for path in ("/a", "/a/z", "/a/b", "/a/b/c", "/a-b"):
        await store.create(path)
    assert await store.children("/a") == ["b", "z"]
    assert await store.children("/a/z") == []
    assert {"a", "a-b"} <= set(await store.children("/"))


async def _each_set_increments_the_version(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a", b"0")
    first = await store.get("/a")
    second = await store.set("/a", b"1", version=0)
    assert second == await store.get("/a")
    assert (second.data, second.version, second.created_zxid) == (b"1", 1, first.created_zxid)
    assert second.modified_zxid > first.modified_zxid
    assert (await store.set("/a", b"2")).version == 2
    await raised(BadVersion, store.set("/a", b"3", version=1))
    assert (await store.get("/a")).data == b"2"


async def _a_recreated_node_starts_at_version_0(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    before = await store.set("/a", b"1")
    await raised(BadVersion, store.delete("/a", version=0))
    await store.delete("/a", version=1)
    assert not await store.exists("/a")
    await store.create("/a")
    after = await store.get("/a")
    assert after.version == 0
    assert after.created_zxid > before.modified_zxid


async def _a_node_with_children_is_not_deleted(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    await store.create("/a")
    await store.create("/a/b")
    assert (await raised(NotEmpty, store.delete("/a"))).path == "/a"
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

    error = await raised(
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
    error = await raised(NodeExists, store.multi([Create("/a/b"), Create("/a/b")]))
    assert (error.path, error.index) == ("/a/b", 1)
    await store.multi([Create("/a/b"), Delete("/a/b"), Delete("/a"), Create("/a", b"new")])
    assert (await store.get("/a")).data == b"new"
    assert await store.create("/a/n_", sequential=True) == "/a/n_0000000000"
    parent = await raised(NotEmpty, store.multi([Create("/p"), Create("/p/q"), Delete("/p")]))
    assert parent.index == 2


async def _batch_reads_skip_missing_nodes(ensemble: Ensemble) -> None:
    store = await ensemble.connect()
    for path in ("/a", "/a/b", "/c"):
        await store.create(path, path.encode())
    found = await store.get_many(["/c", "/none", "/a"])
    assert {path: node.data for path, node in found.items()} == {"/c": b"/c", "/a": b"/a"}
    assert await store.children_many(["/a", "/none", "/c"]) == {"/a": ["b"], "/c": []}


async def _each_multi_of_a_batch_succeeds_or_fails_alone(ensemble: Ensemble) -> None:
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


NODE_CHECKS = (
    _a_created_node_is_read_back,
    _null_is_not_empty_data,
    _a_missing_node_is_an_error,
    _a_path_is_created_once,
    _children_are_sorted_names,
    _each_set_increments_the_version,
    _a_recreated_node_starts_at_version_0,
    _a_node_with_children_is_not_deleted,
    _sequential_nodes_are_numbered,
    _a_multi_is_all_or_nothing,
    _a_multi_sees_its_own_writes,
    _batch_reads_skip_missing_nodes,
    _each_multi_of_a_batch_succeeds_or_fails_alone,
)
