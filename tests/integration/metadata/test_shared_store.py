"""The store that one process serves to others: the store's contract, and the owner's death."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import wraps
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.metadata.errors import ConnectionLost, NotConnected
from penstock.metadata.shared import server as server_module
from penstock.metadata.shared import store as store_module
from penstock.metadata.shared.connection import listening
from penstock.metadata.shared.server import SESSIONS, StoreServer
from penstock.metadata.shared.session_deadlines import SessionDeadlines
from penstock.metadata.shared.store import SharedStore, open_shared
from penstock.metadata.store import Change, DataChanged, MetadataStore, SessionState
from penstock.metadata.tree import FILE_NAME, Tree
from penstock.testing.metadata_store import check_metadata_store
from penstock.testing.store_ensemble import Ensemble, Inbox, raised


def in_a_loop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    @wraps(test)
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    return run


class Owner:
    """A store's owner inside the test, which can stop and start again, as after a crash."""

    def __init__(self, directory: Path) -> None:
        self.path, self._file = directory / "store.sock", directory / FILE_NAME
        self._listening: socket.socket = listening(self.path)

    def start(self) -> None:
        self._tree = Tree.open(self._file, SystemClock(), keep_sessions=True)
        loop = asyncio.get_running_loop()
        self.server = StoreServer(loop, self._tree, SystemClock(), Random())
        self.server.listen(self._listening)

    def stop(self) -> None:
        self.server.close()
        self._tree.close()

    def close(self) -> None:
        self.stop()
        self._listening.close()


class SharedEnsemble:
    """Opens sessions as processes with different names."""

    def __init__(self, owner: Owner, stack: AsyncExitStack) -> None:
        self._owner, self._stack, self._numbers = owner, stack, count()

    async def connect(self, name: str | None = None, timeout_ms: int = 6000) -> SharedStore:
        return await self._stack.enter_async_context(
            open_shared(
                self._owner.path,
                name or f"process {next(self._numbers)}",
                session_timeout_ms=timeout_ms,
                connection_timeout_ms=5000,
            )
        )

    async def expire(self, store: MetadataStore) -> None:
        self._owner.server.expire(store.session_id)


@asynccontextmanager
async def owned(directory: Path) -> AsyncIterator[tuple[Owner, SharedEnsemble]]:
    directory.mkdir(exist_ok=True)
    with closing(Owner(directory)) as owner:
        owner.start()
        async with AsyncExitStack() as stack:
            yield owner, SharedEnsemble(owner, stack)


def test_a_store_served_to_other_processes_keeps_the_contract(tmp_path: Path) -> None:
    numbers = count()

    @asynccontextmanager
    async def make() -> AsyncIterator[Ensemble]:
        async with owned(tmp_path / f"{next(numbers)}") as (_, ensemble):
            yield ensemble

    check_metadata_store(make)


@in_a_loop
async def test_sessions_and_their_nodes_survive_the_owners_death(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        store, other = await ensemble.connect(), await ensemble.connect()
        states: Inbox[SessionState] = Inbox()
        store.watch_session(states.put)
        await store.create("/mine", b"1", ephemeral=True)
        changes: Inbox[Change] = Inbox()
        await store.watch(changes.put, data=["/theirs"])
        before = store.session_id
        owner.stop()
        await states.until(SessionState.SUSPENDED)
        await raised(NotConnected, store.get("/mine"))
        owner.start()
        assert await states.until(SessionState.CONNECTED) == [SessionState.CONNECTED]
        assert store.session_id == before
        assert (await store.get("/mine")).ephemeral_owner == before
        while other.session_state is not SessionState.CONNECTED:
            await asyncio.sleep(0.01)
        await other.create("/theirs")
        await changes.until(DataChanged("/theirs"))
        await store.close()
        assert not await other.exists("/mine")


@in_a_loop
async def test_a_request_in_flight_fails_when_its_owner_dies(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        store = await ensemble.connect()
        owner.server.close()  # new connections are not accepted, and nothing is answered
        asked = raised(ConnectionLost, store.create("/a"))
        await asked
        owner.server = StoreServer(asyncio.get_running_loop(), owner._tree, SystemClock(), Random())


@in_a_loop
async def test_a_session_that_does_not_reconnect_expires(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        store, other = await ensemble.connect(timeout_ms=300), await ensemble.connect()
        states: Inbox[SessionState] = Inbox()
        other.watch_session(states.put)
        await store.create("/mine", ephemeral=True)
        gone: Inbox[Change] = Inbox()
        await other.watch(gone.put, data=["/mine"])
        owner.stop()
        silence(store)
        owner.start()
        await states.until(SessionState.CONNECTED)
        await gone.until(DataChanged("/mine"))
        assert len(await other.children(SESSIONS)) == 1


def silence(store: SharedStore) -> None:
    """Simulates that the session's process died without closing it."""
    store._closed = True
    assert store._timer is not None
    store._timer.cancel()
    if store._connection is not None:
        store._connection.close()


@in_a_loop
async def test_a_process_that_hangs_loses_its_session(tmp_path: Path) -> None:
    async with owned(tmp_path) as (_, ensemble):
        store, other = await ensemble.connect(timeout_ms=300), await ensemble.connect()
        states: Inbox[SessionState] = Inbox()
        store.watch_session(states.put)
        await store.create("/mine", ephemeral=True)
        assert store._timer is not None
        store._timer.cancel()  # it sends nothing any more
        await states.until(SessionState.EXPIRED)
        await states.until(SessionState.CONNECTED)
        assert not await other.exists("/mine")


@in_a_loop
async def test_a_closed_connection_ends_its_session(tmp_path: Path) -> None:
    async with owned(tmp_path) as (_, ensemble):
        store, other = await ensemble.connect(), await ensemble.connect()
        await store.create("/mine", ephemeral=True)
        gone: Inbox[Change] = Inbox()
        await other.watch(gone.put, data=["/mine"])
        silence(store)
        await gone.until(DataChanged("/mine"))


@in_a_loop
async def test_a_restarted_process_ends_its_former_session(tmp_path: Path) -> None:
    """The former session still has its whole timeout, since the owner has just started."""
    async with owned(tmp_path) as (owner, ensemble):
        store = await ensemble.connect("worker 1")
        await store.create("/mine", ephemeral=True)
        owner.stop()
        silence(store)
        owner.start()
        successor = await ensemble.connect("worker 1")
        assert not await successor.exists("/mine")
        await successor.create("/mine", ephemeral=True)


@in_a_loop
async def test_the_owner_drops_a_cancelled_watch(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        store = await ensemble.connect()
        first = await store.watch(lambda _: None, data=["/a", "/b"])
        await store.watch(lambda _: None, data=["/b"])
        first.cancel()
        await store.exists("/a")  # sent after the cancellation
        (connection,) = owner.server._connections.values()
        assert connection.watched == {DataChanged("/b")}


@in_a_loop
async def test_bytes_that_are_no_message_close_the_connection(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        for sent in (b"\x00\x00\x00\x03abc", b"\xff\xff\xff\xff", b"\x00\x00\x00\x01\xc0"):
            reader, writer = await asyncio.open_unix_connection(owner.path)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
        await (await ensemble.connect()).create("/a")


@in_a_loop
async def test_only_the_same_user_may_connect(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, _):
        assert owner.path.stat().st_mode & 0o777 == 0o600


@in_a_loop
async def test_the_error_about_a_missing_owner_names_the_sockets_path(tmp_path: Path) -> None:
    path = tmp_path / "store.sock"
    with pytest.raises(ConfigError, match=f"{path} did not answer within 60 ms"):
        async with open_shared(path, "a", session_timeout_ms=6000, connection_timeout_ms=60):
            pass


def test_time_in_which_the_owner_was_blocked_does_not_count() -> None:
    deadlines = SessionDeadlines(interval_ms=100, now_ms=0)
    deadlines.add(1, 1000, 0)
    assert deadlines.passed(100) == []
    assert deadlines.passed(9000) == []  # a sync took the disk nine seconds
    deadlines.add(2, 1000, 9000)
    deadlines.renew(2, 9900)
    for now_ms in range(9100, 10_000, 100):
        assert 2 not in deadlines.passed(now_ms)
    assert deadlines.passed(10_000) == [1]
    deadlines.remove(1)
    assert deadlines.passed(10_100) == []


@in_a_loop
async def test_a_request_is_retried_while_the_stores_disk_fails(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        connection = owner._tree._connection
        connection.execute("PRAGMA query_only = ON")  # as if the disk were full
        asyncio.get_running_loop().call_later(0.1, connection.execute, "PRAGMA query_only = OFF")
        store = await ensemble.connect()
        assert len(await store.children(SESSIONS)) == 1


def test_a_disk_that_stays_full_does_not_fill_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_module, "REFUSED_S", 0.01)
    monkeypatch.setattr(server_module, "CHECK_MS", 5)

    async def scenario() -> None:
        async with owned(tmp_path) as (owner, ensemble):
            connection = owner._tree._connection
            former = await ensemble.connect("worker 0")
            attempts, real_apply = 0, owner._tree.apply

            def counted(*arguments: Any) -> Any:
                nonlocal attempts
                attempts += 1
                if attempts == 5:
                    connection.execute("PRAGMA query_only = OFF")
                return real_apply(*arguments)

            owner._tree.apply = counted  # type: ignore[method-assign,assignment]
            connection.execute("PRAGMA query_only = ON")
            owner.server.expire(former.session_id)
            await ensemble.connect("worker 1")

    asyncio.run(scenario())
    for reported in ("the session of worker 0 cannot be ended yet", "opens no session"):
        assert caplog.text.count(reported) == 1


@in_a_loop
async def test_an_owner_that_hangs_suspends_its_sessions(tmp_path: Path) -> None:
    async with owned(tmp_path) as (owner, ensemble):
        store = await ensemble.connect(timeout_ms=300)
        states: Inbox[SessionState] = Inbox()
        store.watch_session(states.put)
        owner.server.handle = lambda *_: None  # type: ignore[method-assign]
        asked = raised(ConnectionLost, store.get("/"))
        await asked
        await states.until(SessionState.SUSPENDED)


OWNER = """
import asyncio, socket, sys
from pathlib import Path
from random import Random
from penstock.clock import SystemClock
from penstock.metadata.shared.server import StoreServer
from penstock.metadata.tree import Tree

async def main():
    tree = Tree.open(Path(sys.argv[1]), SystemClock(), keep_sessions=True)
    server = StoreServer(asyncio.get_running_loop(), tree, SystemClock(), Random())
    server.listen(socket.socket(fileno=int(sys.argv[2])))
    await asyncio.Event().wait()

asyncio.run(main())
"""


@in_a_loop
async def test_no_answered_write_is_lost_when_owners_are_killed(tmp_path: Path) -> None:
    """Writes continue while their owner is killed three times; sessions and counters survive."""
    sock = listening(tmp_path / "store.sock")
    arguments = [sys.executable, "-c", OWNER, str(tmp_path / FILE_NAME), str(sock.fileno())]

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(arguments, pass_fds=[sock.fileno()])

    owner, answered, lost = started(), 0, 0
    try:
        async with open_shared(
            tmp_path / "store.sock", "a", session_timeout_ms=30_000, connection_timeout_ms=20_000
        ) as store:
            await store.create("/mine", ephemeral=True)
            await store.create("/count", b"0")
            session = store.session_id
            connected: asyncio.Queue[SessionState] = asyncio.Queue()
            store.watch_session(connected.put_nowait)
            for _ in range(3):
                asyncio.get_running_loop().call_later(0.05, killer(owner))
                try:
                    while True:
                        await store.set("/count", b"%d" % (answered + lost + 1))
                        answered += 1
                except ConnectionLost:
                    pass
                await asyncio.to_thread(owner.wait)
                owner = started()
                while await connected.get() is not SessionState.CONNECTED:
                    continue
                found = int((await store.get("/count")).data or b"")
                assert found in {answered + lost, answered + lost + 1}
                lost = found - answered
            assert store.session_id == session
            assert (await store.get("/mine")).ephemeral_owner == session
            assert answered
    finally:
        owner.kill()
        owner.wait()
        sock.close()


def killer(process: "subprocess.Popen[bytes]") -> Callable[[], None]:
    return lambda: process.send_signal(signal.SIGKILL)
