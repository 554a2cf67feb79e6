"""The embedded metadata store: its contract, restarts, full disks, schema versions."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path

import pytest

from penstock.broker.startup.metadata_store import metadata_store
from penstock.clock import SystemClock
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import StorageError
from penstock.log.disk import DiskFiles
from penstock.metadata.embedded import EmbeddedStore, open_embedded
from penstock.metadata.errors import BadVersion, NoNode
from penstock.metadata.schema import MIGRATIONS, SCHEMA_VERSION, NewerSchema, migrate
from penstock.metadata.store import Change, Check, Create, DataChanged, MetadataStore, Set
from penstock.metadata.tree import FILE_NAME, Tree, TreeLocked
from penstock.testing.metadata_store import check_metadata_store
from penstock.testing.store_ensemble import PATIENCE_S, Ensemble


class EmbeddedEnsemble:
    """Several sessions on one tree, as in a simulated cluster."""

    def __init__(self, tree: Tree, thread: Executor | None = None) -> None:
        self._tree, self._thread = tree, thread

    async def connect(self) -> EmbeddedStore:
        return EmbeddedStore(self._tree, asyncio.get_running_loop().call_soon, self._thread)

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, EmbeddedStore)
        await store.expire()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def opened(path: Path) -> "closing[Tree]":
    return closing(Tree.open(path, SystemClock()))


def test_the_embedded_store_fulfils_the_contract_on_disk(tmp_path: Path) -> None:
    numbers = count()

    @asynccontextmanager
    async def make() -> AsyncIterator[Ensemble]:
        with opened(tmp_path / f"{next(numbers)}.sqlite") as tree:
            yield EmbeddedEnsemble(tree)

    check_metadata_store(make)


def test_the_embedded_store_fulfils_the_contract_in_its_own_thread(tmp_path: Path) -> None:
    numbers = count()

    @asynccontextmanager
    async def make() -> AsyncIterator[Ensemble]:
        async with open_embedded(tmp_path / f"{next(numbers)}.sqlite", SystemClock()) as store:
            yield EmbeddedEnsemble(store._tree, store._thread)

    check_metadata_store(make)


def test_the_embedded_store_fulfils_the_contract_in_memory() -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[Ensemble]:
        with closing(Tree.in_memory(SystemClock())) as tree:
            yield EmbeddedEnsemble(tree)

    check_metadata_store(make)


def test_nodes_survive_the_process_and_sessions_do_not(path: Path) -> None:
    with opened(path) as tree:
        session = tree.open_session()
        tree.apply(session, [[Create("/a", b"1"), Create("/a/live", ephemeral=True)]])
        before = tree.get("/a")
    with opened(path) as tree:
        assert tree.get("/a") == before
        assert tree.children("/a") == []
        tree.apply(tree.open_session(), [[Create("/b", ephemeral=True)]])
        again = tree.get("/b")
        assert again.created_zxid > before.created_zxid
        assert again.ephemeral_owner > session


def test_numbering_continues_after_a_restart(path: Path) -> None:
    numbered = Create("/n_", sequential=True)
    with opened(path) as tree:
        assert tree.apply(tree.open_session(), [[numbered], [numbered]])[1] == ["/n_0000000001"]
    with opened(path) as tree:
        assert tree.apply(tree.open_session(), [[numbered]]) == [["/n_0000000002"]]


def test_only_one_process_may_open_the_file(path: Path) -> None:
    with opened(path), pytest.raises(TreeLocked, match="in use by another process"):
        Tree.open(path, SystemClock())
    with opened(path):
        pass


def test_commits_wait_for_the_disk(path: Path) -> None:
    with opened(path) as tree:
        pragmas = {
            name: tree._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2}


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    with opened(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE store SET schema_version = ?", (SCHEMA_VERSION + 1,))
    before = path.read_bytes()
    with pytest.raises(NewerSchema, match=f"version {SCHEMA_VERSION + 1}, this Penstock knows"):
        Tree.open(path, SystemClock())
    assert path.read_bytes() == before


def test_an_older_schema_is_migrated_with_its_nodes(path: Path) -> None:
    with opened(path) as tree:
        tree.apply(tree.open_session(), [[Create("/a", b"kept")]])
    later = (*MIGRATIONS, ("ALTER TABLE node ADD COLUMN note TEXT DEFAULT 'new'",))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, later)
        migrate(connection, later)
        rows = connection.execute("SELECT data, note FROM node WHERE path = '/a'").fetchall()
        versions = connection.execute("SELECT schema_version FROM store").fetchall()
    assert rows == [(b"kept", "new")]
    assert versions == [(SCHEMA_VERSION + 1,)]


def test_a_failed_migration_changes_nothing(path: Path) -> None:
    with opened(path):
        pass
    broken = (*MIGRATIONS, ("ALTER TABLE node ADD COLUMN note TEXT", "NONSENSE"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, broken)
        assert connection.execute("SELECT schema_version FROM store").fetchall() == [
            (SCHEMA_VERSION,)
        ]
        columns = connection.execute("SELECT name FROM pragma_table_info('node')").fetchall()
    assert ("note",) not in columns


def test_a_file_that_is_not_a_database_is_a_storage_error(path: Path) -> None:
    path.write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(StorageError, match="not a database"):
        Tree.open(path, SystemClock())


def test_a_migration_that_sqlite_rolls_back_reports_the_cause(path: Path) -> None:
    """As on a full disk. The error used to be "cannot rollback"."""
    undone = "CREATE TRIGGER t BEFORE UPDATE ON store BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="full"),
    ):
        migrate(connection, (*MIGRATIONS, (undone,)))


def test_a_full_disk_fails_the_write_and_keeps_earlier_data(path: Path) -> None:
    with opened(path) as tree:
        session = tree.open_session()
        tree.apply(session, [[Create("/a", b"kept")]])
        zxid = tree.get("/a").created_zxid
        (pages,) = tree._connection.execute("PRAGMA page_count").fetchone()
        tree._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="full"):
            tree.apply(session, [[Set("/a", b"x")], [Create("/big", bytes(100_000))]])
        assert tree.get("/a").data == b"kept"
        with pytest.raises(NoNode):
            tree.get("/big")
        tree.apply(session, [[Set("/a", b"y")]])
        assert tree.get("/a").modified_zxid == zxid + 1


def test_an_invalid_path_is_a_bug(path: Path) -> None:
    with opened(path) as tree:
        for wrong in ("", "a", "/", "/a/", "//a", "/../a", "/a/."):
            with pytest.raises(ValueError, match="not the path of a node"):
                tree.apply(0, [[Create("/before"), Create(wrong)]])
        assert tree.children("/") == []


def test_callbacks_run_after_the_call_and_not_once_cancelled() -> None:
    async def scenario() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        reported: list[Change] = []
        unwanted: list[Change] = []
        arrived = asyncio.Event()
        await store.watch(reported.append, data=["/a"])
        late = await store.watch(unwanted.append, data=["/a"])
        await store.watch(lambda _: arrived.set(), data=["/a"])
        await store.multi([Create("/a"), Set("/a", b"1"), Set("/a", b"2")])
        assert reported == []
        late.cancel()
        await arrived.wait()
        assert reported == [DataChanged("/a")]
        assert unwanted == []
        tree.close()

    asyncio.run(scenario())


def test_a_slow_disk_does_not_block_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        alone = ZookeeperConfig()
        async with metadata_store(alone, tmp_path, DiskFiles(), SystemClock()) as store:
            assert isinstance(store, EmbeddedStore)
            loop_goes_on = threading.Event()
            waited: list[bool] = []
            store._tree.listeners.insert(0, lambda _: waited.append(loop_goes_on.wait(PATIENCE_S)))
            asyncio.get_running_loop().call_soon(loop_goes_on.set)
            assert await store.create("/a") == "/a"
            assert waited == [True]

    asyncio.run(scenario())


def test_the_write_of_a_cancelled_caller_is_committed_and_notified(path: Path) -> None:
    async def scenario() -> None:
        async with open_embedded(path, SystemClock()) as store:
            began, may_end, reported = asyncio.Event(), threading.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def slow(_: object) -> None:
                loop.call_soon_threadsafe(began.set)
                assert may_end.wait(PATIENCE_S)

            store._tree.listeners.insert(0, slow)
            await store.watch(lambda _: reported.set(), data=["/a"])
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(store.create("/a"))
                await began.wait()
                writing.cancel()
            may_end.set()
            async with asyncio.timeout(PATIENCE_S):
                await reported.wait()
            assert await store.exists("/a")

    asyncio.run(scenario())


def test_a_failed_multi_names_the_operation_and_the_reason() -> None:
    with closing(Tree.in_memory(SystemClock())) as tree:
        (error,) = tree.apply(1, [[Create("/epoch"), Check("/epoch", 3)]])
    assert isinstance(error, BadVersion)
    assert str(error) == "/epoch: is at another version (operation 1 of a multi)"
