"""A broker in the simulation: the whole of `broker.app`, on a machine that can fail."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

from penstock.broker.app import RunningBroker, running
from penstock.broker.machine import Machine
from penstock.broker.net.server import Server
from penstock.clock import Clock
from penstock.config.listener import Endpoint
from penstock.config.network import NetworkConfig
from penstock.config.sources import resolve
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import StorageError
from penstock.log.files import Files, OutOfFiles
from penstock.log.flush import Flushable, Flusher
from penstock.metadata.store import MetadataStore
from penstock.record.batch import BatchHeader, batches
from penstock.testing.files import Choice, FakeFiles
from penstock.types import TopicPartition
from simulation.loop import PROCESS, Process, SimulatedLoop
from simulation.network import Network
from simulation.zookeeper import SimulatedStore, ZooKeeper

PORT = 9092
ROOT = Path("/data")
DIRECTORIES = ("/data/d0", "/data/d1")


class SimulatedClock:
    """The loop's time, shared by all brokers."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)


class Disk(FakeFiles):
    """One process's access to its machine's disk; it ends with the process."""

    def __init__(self, process: Process, before: "Disk | None" = None) -> None:
        super().__init__()
        self._process = process
        self.failed: set[str] = set()
        self.lacks_files = False
        """The process has reached its limit of open files."""
        if before is not None:
            self._root = before._root

    def operate(self, operation: str, path: Path) -> None:
        if not self._process.is_alive:
            raise StorageError(f"{path}: this process is dead")
        if any(str(path).startswith(each) for each in self.failed):
            raise StorageError(f"{path}: Input/output error")
        if self.lacks_files and operation in {"open", "sync_dir"}:
            raise self._out_of_files(path)
        super().operate(operation, path)

    # A real disk opens a file for each of these, too.

    def read(self, path: Path) -> bytes:
        if self.lacks_files:
            raise self._out_of_files(path)
        return super().read(path)

    def mapped(self, path: Path) -> bytes:
        if self.lacks_files:
            raise self._out_of_files(path)
        return super().mapped(path)

    def names(self, path: Path) -> list[str]:
        if self.lacks_files:
            raise self._out_of_files(path)
        return super().names(path)

    def _out_of_files(self, path: Path) -> OutOfFiles:
        return OutOfFiles(f"{path}: Too many open files")

    def crash(self, choose: Choice) -> None:  # type: ignore[override]
        super().crash(choose)

    def last_batch(self, where: TopicPartition) -> tuple[Path, int, BatchHeader] | None:
        """The segment, the position and the header of a log's last batch; None if the active
        segment is empty, or there is no log.
        """
        found = None
        paths = [each for each in self.walk(ROOT) if each.parent.name == str(where)]
        for path in sorted(each for each in paths if each.suffix == ".log")[-1:]:
            for position, header in batches(self._file(path).data):
                found = path, position, header
        return found

    def flip_last_offset(self, where: TopicPartition, bit: int) -> bool:
        """Flip a bit of the last batch's base offset; returns whether there is such a batch."""
        found = self.last_batch(where)
        if found is not None:
            path, position, _ = found
            self.flip_bit(path, (position + 7 - bit // 8) * 8 + bit % 8)
        return found is not None

    def sync(self) -> None:
        """Sync everything, as a machine does on shutdown."""
        for path in list(self.walk(ROOT)):
            self._file(path).sync()
            for parent in path.parents:
                self._directory(parent).sync()


class LoopFlusher(Flusher):
    """Flushes on the loop after a short delay, like a real disk."""

    def __init__(self, loop: SimulatedLoop, chance: Random) -> None:
        self._loop, self._chance = loop, chance
        self._running: set[Flushable] = set()
        self._waiting: dict[Flushable, list[Future[int]]] = {}
        self._deliver = lambda call: call()
        self._threads = cast("Any", self)
        self._pending: dict[Future[None], Callable[[], None]] = {}

    def submit(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()

        def done() -> None:
            if self._pending.pop(future, None) is None:
                return
            if not future.set_running_or_notify_cancel():
                return  # nobody waits for it any more
            try:
                work()
            except StorageError as error:
                future.set_exception(error)
            else:
                future.set_result(None)

        self._pending[future] = done
        self._loop.call_later(self._chance.uniform(0.001, 0.02), done)
        return future

    def shutdown(self) -> None:
        """A stopping broker waits for its threads; a killed one does not."""
        for done in list(self._pending.values()):
            done()


class SimulatedServer(Server):
    """Sends slices of files in memory as bytes, because sendfile cannot read them."""

    send_slice = staticmethod(lambda sock, part: sock.send(part.read()))


class SimulatedBroker:
    """A broker id with its machine: started, killed and started again."""

    def __init__(
        self,
        number: int,
        network: Network,
        zookeeper: ZooKeeper,
        settings: Mapping[str, str],
    ) -> None:
        self.number, self.host = number, f"broker-{number}"
        self._network, self._zookeeper, self._settings = network, zookeeper, settings
        self.loop, self.chance = network.loop, network.chance
        self.process = Process(self.host)
        self.replace_disk()
        self.boots = 1
        self.lives = 0
        self.running: RunningBroker | None = None
        self.store: SimulatedStore | None = None
        self._stop: asyncio.Event | None = None
        self._session = 0
        self._main: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    def replace_disk(self) -> None:
        """Replace the disk by an empty one."""
        self.disk = Disk(Process(self.host))
        self.disk.make_dir(ROOT)
        self.disk.sync_dir(ROOT.parent)

    @property
    def is_up(self) -> bool:
        return self._main is not None and self.process.is_alive

    @property
    def has_offline_directory(self) -> bool:
        if self.running is None:
            return False
        store = self.running.services.replicas.partitions.store
        return len(store.online) < len(store.dirs)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        assert not self.is_up
        self.lives += 1
        self.process = Process(self.host)
        self.disk = Disk(self.process, self.disk)
        self._main = tasks.create_task(self._serve(), context=self.process.context.copy())

    @property
    def _store_settings(self) -> dict[str, str]:
        return {"zookeeper.connect": "zookeeper:2181"}

    def machine(self) -> Machine:
        return Machine(
            clock=SimulatedClock(self.loop),
            file_limit=lambda: 65_536,
            files=lambda _: self.disk,
            boot_id=lambda: f"boot-{self.boots}",
            chance=Random(self.chance.random()),
            make_directory=lambda _: None,
            bind=self._bind,
            server=SimulatedServer,
            flusher=lambda _: LoopFlusher(self.loop, self.chance),
            open_store=self._open_store,
        )

    def _bind(self, endpoint: Endpoint, _: NetworkConfig) -> Any:
        return self._network.bind(endpoint.host, endpoint.port)

    @asynccontextmanager
    async def _open_store(
        self, _: ZookeeperConfig, __: Path, ___: Files, ____: Clock
    ) -> AsyncIterator[MetadataStore]:
        store = SimulatedStore(self._zookeeper)
        await store.connected()
        if self._session:  # as by `zookeeper-session.json`
            self._zookeeper.end(self._session)
        self.store = store
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(store.run())
            try:
                yield store
            finally:
                await store.close()
                keeping.cancel()

    async def _serve(self) -> None:
        process = PROCESS.get()
        resolved = resolve(
            defaults={
                "listeners": f"PLAINTEXT://{self.host}:{PORT}",
                "log.dirs": ",".join(DIRECTORIES),
                "broker.id": str(self.number),
                **self._store_settings,
                "penstock.http.listen": "",
                **self._settings,
            },
            strict=True,
        )
        self._stop = asyncio.Event()
        self.disk.failed.clear()
        try:
            async with running(resolved, ROOT, self.machine()) as broker:
                self.running = broker
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001  for the world to judge
            if process.is_alive and not isinstance(error, asyncio.CancelledError):
                self.error = error
        finally:
            if process is self.process:
                self.running = None
                self._network.process_died(process, reported=True)
                process.is_alive = False

    async def stop(self) -> None:
        """Stop with a controlled shutdown."""
        if self._stop is not None and self._main is not None and self.is_up:
            self._stop.set()
            await asyncio.wait([self._main])

    def kill(self) -> None:
        """The process dies. The machine and its page cache survive."""
        self._die(reported=True)

    def lose_power(self, choose: Choice) -> None:
        """The machine dies. Unsynced data is lost, except what `choose` keeps."""
        self._die(reported=False)
        self._network.down.add(self.host)
        self.disk.crash(choose)
        self.boots += 1

    def _die(self, *, reported: bool) -> None:
        process, main = self.process, self._main
        assert main is not None
        process.is_alive = False
        self._network.process_died(process, reported=reported)
        if self.store is not None:
            self._zookeeper.clients.pop(self.store.session_id, None)
            self._session = self.store.session_id
        self.running = None
        if process.is_paused:
            self.loop.resume(process)
        main.cancel()  # its tasks end, and can change nothing more

    @property
    def session(self) -> int:
        """The session of the last process, which has died."""
        return self._session

    def forget_session(self) -> None:
        """Make the next process forget the last session, so that it waits for its expiry."""
        self._session = 0

    def pause(self) -> None:
        self.process.is_paused = True

    def resume(self) -> None:
        if self.process.is_paused:
            self.loop.resume(self.process)
