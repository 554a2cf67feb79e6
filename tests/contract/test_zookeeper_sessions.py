"""What happens to a session when ZooKeeper is slow, down, or has expired it."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest

from peers.process import free_ports
from peers.zookeeper import ZooKeeper
from peers.zookeeper_session import end_session
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.metadata.errors import (
    BadVersion,
    ConnectionLost,
    DataTooLarge,
    NotConnected,
    SessionExpired,
    StoreUnavailable,
)
from penstock.metadata.store import (
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    SessionState,
    Set,
)
from penstock.metadata.zookeeper.opening import open_store
from penstock.metadata.zookeeper.session_file import FILE_NAME
from penstock.metadata.zookeeper.store import ZooKeeperStore
from penstock.metadata.zookeeper.translation import MAX_DATA_BYTES
from penstock.testing.store_ensemble import Inbox, raised
from support.brokers.zookeeper_faults import run_unblocked, stopped

pytestmark = pytest.mark.peer

QUICK = {"tickTime": 200}
"""A session lasts at least two ticks."""

CONNECTED, SUSPENDED, EXPIRED = (
    SessionState.CONNECTED,
    SessionState.SUSPENDED,
    SessionState.EXPIRED,
)

chroots = count()


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper(settings=QUICK) as zookeeper:
        yield zookeeper


@pytest.fixture
def connect(zookeeper: ZooKeeper) -> str:
    """The connect string of an empty tree."""
    return f"{zookeeper.connect}/test/{next(chroots)}"


def config(connect: str, timeout_ms: int = 4000, in_flight: int = 10) -> ZookeeperConfig:
    return ZookeeperConfig(
        zookeeper_connect=connect,
        zookeeper_session_timeout_ms=timeout_ms,
        zookeeper_connection_timeout_ms=30_000,  # a restarting server needs some time
        zookeeper_max_in_flight_requests=in_flight,
    )


@asynccontextmanager
async def opened(
    connect: str, directory: Path | None = None, timeout_ms: int = 4000, in_flight: int = 10
) -> AsyncIterator[ZooKeeperStore]:
    store = await open_store(config(connect, timeout_ms, in_flight), directory)
    try:
        yield store
    finally:
        await store.close()


def states_of(store: ZooKeeperStore) -> Inbox[SessionState]:
    inbox: Inbox[SessionState] = Inbox()
    store.watch_session(inbox.put)
    return inbox


def come_back(zookeeper: ZooKeeper) -> None:
    """Starts the server without waiting for it, because the store under test waits. Not in another
    thread: the server would end with that thread.
    """
    zookeeper._processes[0].start()


def test_a_session_outlives_a_restart_of_the_server(zookeeper: ZooKeeper, connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect) as store:
            states, session = states_of(store), store.session_id
            await store.create("/mine", ephemeral=True)
            await store.create("/parent")
            changes: Inbox[Change] = Inbox()
            await store.watch(changes.put, data=["/data"], children=["/parent"])
            zookeeper.kill(0)
            await states.until(SUSPENDED)
            come_back(zookeeper)
            assert await states.until(CONNECTED) == [CONNECTED]
            assert store.session_id == session
            assert (await store.get("/mine")).ephemeral_owner == session
            # A server forgets the watches of a lost connection.
            async with opened(connect) as other:
                await other.create("/data")
                await changes.until(DataChanged("/data"))
                await other.create("/parent/child")
                await changes.until(ChildrenChanged("/parent"))

    run_unblocked(scenario)


@pytest.mark.parametrize("outage_s", [0.5, pytest.param(60, marks=pytest.mark.soak)])
def test_without_a_server_every_request_fails_at_once(
    zookeeper: ZooKeeper, connect: str, outage_s: float
) -> None:
    async def scenario() -> None:
        async with opened(connect) as store:
            states = states_of(store)
            zookeeper.kill(0)
            await states.until(SUSPENDED)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(outage_s):
                    await states._items.get()
            assert store.session_state is SUSPENDED
            # More requests than could wake kazoo's thread without blocking the loop.
            for number in range(2000):
                error = await raised(NotConnected, store.create(f"/{number}"))
                assert isinstance(error, StoreUnavailable)
            await raised(NotConnected, store.multi_many([[Check("/", 0)]]))
            await raised(NotConnected, store.watch(print, data=["/a"]))
            come_back(zookeeper)
            await states.until(CONNECTED)
            # No failed request was queued and sent later.
            assert await store.children("/") == []

    run_unblocked(scenario)


def test_a_write_to_a_server_that_hangs_has_an_unknown_outcome(
    zookeeper: ZooKeeper, connect: str
) -> None:
    async def scenario() -> None:
        async with opened(connect, timeout_ms=2000, in_flight=3) as store:
            states = states_of(store)
            await store.create("/a", b"0")
            with stopped(zookeeper.pids[0]):
                began = time.monotonic()
                multis = [[Set("/a", b"%d" % number)] for number in range(1, 6)]
                answers = await store.multi_many(multis)
                assert time.monotonic() - began < 2
                await states.until(SUSPENDED)
            # Three requests were sent; the others are known not to have been.
            assert list(map(type, answers)) == [ConnectionLost] * 3 + [NotConnected] * 2
            await states.until(CONNECTED)
            # Each of the three writes has been applied or lost by now, so the value read is final.
            seen = await store.get("/a")
            assert seen.data in {b"0", b"1", b"2", b"3"}
            written = await store.set("/a", b"last", seen.version)
            assert written.version == seen.version + 1
            assert await store.get("/a") == written

    run_unblocked(scenario)


def test_an_expired_session_is_reported_and_replaced(zookeeper: ZooKeeper, connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect) as store, opened(connect) as other:
            states, session = states_of(store), store.session_id
            await store.create("/mine", ephemeral=True)
            gone: Inbox[Change] = Inbox()
            await other.create("/other")
            await other.watch(gone.put, data=["/mine"])
            key = store._session.client_id
            await asyncio.to_thread(end_session, zookeeper.port(0), *key)
            assert await states.until(CONNECTED) == [SUSPENDED, EXPIRED, CONNECTED]
            await gone.until(DataChanged("/mine"))
            assert store.session_id not in {session, other.session_id}
            await store.create("/mine", ephemeral=True)
            await gone.until(DataChanged("/mine"))

    run_unblocked(scenario)


@pytest.mark.row("A159")
def test_a_session_expires_while_its_broker_is_suspended(connect: str) -> None:
    """As after SIGCONT: the broker's thread slept while the server's clock ran."""

    async def scenario() -> None:
        async with opened(connect, timeout_ms=1000) as store, opened(connect) as other:
            with subprocess.Popen(
                [sys.executable, "-c", HOLDER, connect, "1000"], stdout=subprocess.PIPE, text=True
            ) as holder:
                assert holder.stdout is not None
                await asyncio.to_thread(holder.stdout.readline)
                gone: Inbox[Change] = Inbox()
                await other.create("/seen")
                await other.watch(gone.put, data=["/holder"])
                with stopped(holder.pid):
                    await gone.until(DataChanged("/holder"))
                assert not await other.exists("/holder")
                # The broker comes back with a new session and registers again.
                await gone.until(DataChanged("/holder"))
                assert (await other.get("/holder")).data == b"1"
                holder.kill()
            assert store.session_state is CONNECTED

    run_unblocked(scenario)


@pytest.mark.row("A093")
def test_a_longer_session_survives_a_pause_that_expires_a_shorter_one(connect: str) -> None:
    async def scenario() -> None:
        short, long = f"{connect}/short", f"{connect}/long"
        async with opened(short) as beside_short, opened(long) as beside_long:
            with held(short, timeout_ms=1000) as brief, held(long, timeout_ms=4000) as patient:
                for process in (brief, patient):
                    assert process.stdout is not None
                    await asyncio.to_thread(process.stdout.readline)
                gone: Inbox[Change] = Inbox()
                await beside_short.watch(gone.put, data=["/holder"])
                with stopped(brief.pid), stopped(patient.pid):
                    await gone.until(DataChanged("/holder"))
                    assert not await beside_short.exists("/holder")
                assert (await beside_long.get("/holder")).data == b"0"
                brief.kill()
                patient.kill()

    run_unblocked(scenario)


def held(connect: str, timeout_ms: int) -> subprocess.Popen[str]:
    """A process that holds an ephemeral node and prints it."""
    command = [sys.executable, "-c", HOLDER, connect, str(timeout_ms)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


HOLDER = """
import asyncio, sys
from pathlib import Path
from penstock.config.zookeeper import ZookeeperConfig
from penstock.metadata.store import SessionState
from penstock.metadata.zookeeper.opening import open_store

async def hold(connect, timeout_ms, directory=None):
    store = await open_store(
        ZookeeperConfig(zookeeper_connect=connect, zookeeper_session_timeout_ms=int(timeout_ms)),
        directory and Path(directory),
    )
    states = asyncio.Queue()
    store.watch_session(states.put_nowait)
    for number in range(10):
        await store.create("/holder", b"%d" % number, ephemeral=True)
        print("holds", flush=True)
        while await states.get() is not SessionState.EXPIRED:
            pass
        while await states.get() is not SessionState.CONNECTED:
            pass

asyncio.run(hold(*sys.argv[1:]))
"""


def test_a_restarted_process_removes_the_ephemeral_nodes_of_its_killed_predecessor(
    connect: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        # Without that, the old session would last for a minute.
        async with opened(connect) as other:
            with subprocess.Popen(
                [sys.executable, "-c", HOLDER, connect, "60000", tmp_path],
                stdout=subprocess.PIPE,
                text=True,
            ) as holder:
                assert holder.stdout is not None
                await asyncio.to_thread(holder.stdout.readline)
                holder.send_signal(signal.SIGKILL)
            await other.create("/seen")
            assert await other.exists("/holder")
            assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
            began = time.monotonic()
            async with opened(connect, tmp_path) as store:
                assert not await store.exists("/holder")
                assert time.monotonic() - began < 5
                await store.create("/holder", ephemeral=True)
            # A session that was closed cleanly leaves no key file.
            assert not (tmp_path / FILE_NAME).exists()

    asyncio.run(scenario())


def test_the_key_of_an_ended_session_is_replaced(connect: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(connect, tmp_path) as store:
            await store.create("/mine", ephemeral=True)
            left = (tmp_path / FILE_NAME).read_bytes()
        (tmp_path / FILE_NAME).write_bytes(left)
        async with opened(connect, tmp_path) as store:
            assert not await store.exists("/mine")
            assert (tmp_path / FILE_NAME).read_bytes() != left

    asyncio.run(scenario())


def test_a_session_that_could_not_be_closed_is_closed_at_the_next_start(
    zookeeper: ZooKeeper, connect: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with opened(connect, tmp_path, timeout_ms=4000) as store:
            await store.create("/mine", ephemeral=True)
            zookeeper.kill(0)
            began = time.monotonic()
        assert time.monotonic() - began < 3
        assert (tmp_path / FILE_NAME).exists()
        come_back(zookeeper)
        async with opened(connect) as other:
            assert await other.exists("/mine")
            async with opened(connect, tmp_path) as store:
                assert not await store.exists("/mine")

    asyncio.run(scenario())


def test_a_copy_of_the_data_does_not_end_the_session(connect: str, tmp_path: Path) -> None:
    original, copied = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    copied.mkdir()

    async def scenario() -> None:
        async with opened(connect, original) as store:
            states, session = states_of(store), store.session_id
            (copied / FILE_NAME).write_bytes((original / FILE_NAME).read_bytes())
            async with opened(connect, copied) as other:
                await other.create("/a")
            await store.create("/b")
            assert (store.session_id, states._items.qsize()) == (session, 0)

    asyncio.run(scenario())


def test_a_stale_version_fails_the_whole_multi(connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect) as store, opened(connect) as other:
            await store.create("/epoch", b"1")
            await other.set("/epoch", b"2", 0)
            error = await raised(
                BadVersion,
                store.multi([Create("/decided"), Check("/epoch", 0), Set("/epoch", b"")]),
            )
            assert (error.path, error.index) == ("/epoch", 1)
            assert not await store.exists("/decided")

    run_unblocked(scenario)


def test_a_request_too_large_for_zookeeper_is_not_sent(connect: str) -> None:
    most, more = bytes(MAX_DATA_BYTES), bytes(MAX_DATA_BYTES + 1)

    async def scenario() -> None:
        async with opened(connect) as store:
            states = states_of(store)
            await store.create("/a", most)
            assert (await store.get("/a")).data == most
            await raised(DataTooLarge, store.set("/a", more))
            half = bytes(MAX_DATA_BYTES // 2 + 1)
            answers = await store.multi_many(
                [[Create("/b")], [Set("/b", half), Set("/b", half)], [], [Create("/c", most)]]
            )
            assert [answers[0], *answers[2:]] == [["/b"], [], ["/c"]]
            assert isinstance(answers[1], DataTooLarge)
            assert states._items.empty()

    run_unblocked(scenario)


def test_a_long_batch_is_sent_in_order_a_few_requests_at_a_time(connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect, in_flight=7) as store:
            await store.create("/n")
            multis = [[Create("/n/x", sequential=True)] for _ in range(1000)]
            answers = await store.multi_many(multis)
            assert answers == [[f"/n/x{number:010d}"] for number in range(1000)]
            assert len(await store.get_many(f"/n/x{number:010d}" for number in range(1000))) == 1000

    run_unblocked(scenario)


def test_notifications_overtake_a_batch_and_cancelled_requests_are_not_sent(connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect, in_flight=1) as store:
            first = asyncio.Event()
            await store.watch(lambda _: first.set(), data=["/0"])
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(
                    store.multi_many([[Create(f"/{number}")] for number in range(1000)])
                )
                await first.wait()
                task.cancel()
            made = len(await store.children("/"))
            assert 1 <= made < 100
            await store.create("/last")
            assert len(await store.children("/")) == made + 1

    run_unblocked(scenario)


def test_many_brokers_create_the_chroot_concurrently(zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/deep/{next(chroots)}/chroot"

    async def scenario() -> None:
        stores: list[ZooKeeperStore] = []

        async def join() -> None:
            stores.append(await open_store(config(connect)))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(join())
        assert [await each.children("/") for each in stores] == [[]] * 4
        for each in stores:
            await each.close()

    run_unblocked(scenario)


def test_an_error_about_an_unreachable_zookeeper_names_its_settings() -> None:
    (port,) = free_ports(1)
    absent = ZookeeperConfig(
        zookeeper_connect=f"127.0.0.1:{port}/x", zookeeper_connection_timeout_ms=300
    )
    with pytest.raises(ConfigError, match=rf"zookeeper\.connect: .*127\.0\.0\.1:{port} within 300"):
        asyncio.run(open_store(absent))


@pytest.fixture(scope="module")
def three_servers() -> Iterator[ZooKeeper]:
    with ZooKeeper(3, settings=QUICK) as zookeeper:
        yield zookeeper


@asynccontextmanager
async def with_a_follower(zookeeper: ZooKeeper) -> AsyncIterator[tuple[ZooKeeperStore, int]]:
    """A store and the server of its session, which is not the leader."""
    while True:
        async with opened(f"{zookeeper.connect}/test/{next(chroots)}", timeout_ms=3000) as store:
            port = store._session._connection._socket.getpeername()[1]
            server = next(each for each in range(3) if zookeeper.port(each) == port)
            if await asyncio.to_thread(zookeeper.mode, server) == "follower":
                yield store, server
                return


def test_nodes_cannot_be_protected_without_a_login() -> None:
    unserved = ZookeeperConfig(zookeeper_connect="127.0.0.1:1", zookeeper_set_acl=True)
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl is true, but neither"):
        asyncio.run(open_store(unserved))


def test_a_store_switches_from_a_dead_server_at_once(three_servers: ZooKeeper) -> None:
    async def scenario() -> None:
        async with with_a_follower(three_servers) as (store, server):
            states, session = states_of(store), store.session_id
            await store.create("/mine", ephemeral=True)
            began = time.monotonic()
            three_servers.kill(server)
            try:
                await states.until(CONNECTED)
                # A session waits for a silent server for two thirds of its timeout.
                assert time.monotonic() - began < 2
                assert store.session_id == session
                assert await store.exists("/mine")
            finally:
                three_servers._processes[server].start()

    run_unblocked(scenario)


def test_a_store_leaves_a_hanging_server_before_the_session_expires(
    three_servers: ZooKeeper,
) -> None:
    async def scenario() -> None:
        async with with_a_follower(three_servers) as (store, server):
            states, session = states_of(store), store.session_id
            await store.create("/mine", ephemeral=True)
            with stopped(three_servers.pids[server]):
                await states.until(CONNECTED)
                assert store.session_id == session
                assert await store.exists("/mine")

    run_unblocked(scenario)


@pytest.mark.parametrize("faults", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_no_change_is_missed_whatever_happens_to_the_servers(
    three_servers: ZooKeeper, faults: int
) -> None:
    """A reader that reads on each notification and after each reconnect ends at the last of many
    writes.
    """
    chance = Random(faults)

    async def scenario() -> None:
        path = f"{three_servers.connect}/test/{next(chroots)}"
        async with opened(path, timeout_ms=3000) as reader, opened(path, timeout_ms=3000) as writer:
            following = Following(reader)
            await writer.create("/a", b"0")
            await reader.watch(following.look, data=["/a"])
            reader.watch_session(following.look)
            following.look()
            async with asyncio.TaskGroup() as tasks:
                follow = tasks.create_task(following.run())
                for _ in range(faults):
                    server = chance.randrange(3)
                    writing = tasks.create_task(keep_writing(writer))
                    if chance.random() < 0.5:
                        with stopped(three_servers.pids[server]):
                            await following.several_more(chance.randrange(3))
                    else:
                        three_servers.kill(server)
                        await following.several_more(chance.randrange(3))
                        three_servers._processes[server].start()
                    await following.several_more(5)
                    writing.cancel()
                last = await written_last(writer)
                await following.until(last)
                follow.cancel()

    run_unblocked(scenario)


class Following:
    """Reads `/a` at each notification; fails if the value ever goes back."""

    def __init__(self, store: ZooKeeperStore) -> None:
        self._store = store
        self._look, self._seen = asyncio.Event(), asyncio.Condition()
        self.value = -1

    def look(self, *_: object) -> None:
        self._look.set()

    async def run(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                value = int((await self._store.get("/a")).data or b"")
            except StoreUnavailable:
                continue  # the next connection sends another notification
            assert value >= self.value
            self.value = value
            async with self._seen:
                self._seen.notify_all()

    async def until(self, value: int) -> None:
        async with asyncio.timeout(20), self._seen:
            await self._seen.wait_for(lambda: self.value >= value)

    async def several_more(self, count: int) -> None:
        await self.until(self.value + count)


async def keep_writing(store: ZooKeeperStore) -> None:
    """Increments the value at the version that was read: an uncertain write is read back, not
    repeated.
    """
    while True:
        with suppress(StoreUnavailable, BadVersion):
            node = await store.get("/a")
            await store.set("/a", b"%d" % (int(node.data or b"") + 1), node.version)
        await connected(store)


async def written_last(store: ZooKeeperStore) -> int:
    while True:
        await connected(store)
        with suppress(StoreUnavailable):
            return int((await store.set("/a", b"1000000")).data or b"")


async def connected(store: ZooKeeperStore) -> None:
    came = asyncio.Event()
    news = store.watch_session(lambda _: came.set())
    while store.session_state is not CONNECTED:
        await came.wait()
        came.clear()
    news.cancel()


def test_a_closed_store_reports_an_expired_session(connect: str) -> None:
    async def scenario() -> None:
        async with opened(connect) as store:
            await store.create("/a")
        await raised(SessionExpired, store.get("/a"))

    run_unblocked(scenario)
