"""A machine with workers: brokers on one embedded store, served by a separate process.

The owner and the sessions are those of `metadata.shared`, on simulated sockets.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import cast

from msgspec.structs import replace

from penstock.broker.machine import Machine
from penstock.clock import Clock
from penstock.config.zookeeper import ZookeeperConfig
from penstock.log.files import Files
from penstock.metadata.connecting import start_and_connect
from penstock.metadata.shared.messages import Request, Response
from penstock.metadata.shared.server import StoreServer, _Connection
from penstock.metadata.shared.store import SharedStore
from penstock.metadata.store import MetadataStore
from simulation.broker import SimulatedBroker, SimulatedClock
from simulation.loop import Process
from simulation.network import Network
from simulation.zookeeper import ZooKeeper

HOST, PORT = "store", 1
CONNECT_MS = 60_000
SYNCED = {"log.flush.interval.messages": "1"}
"""There is no other replica: acknowledged records must be on disk to survive a power failure."""


class RecordedServer(StoreServer):
    """Notes whose request is being executed, for `Registrar`."""

    tree_of: ZooKeeper

    def handle(self, request: Request, connection: _Connection) -> Response | None:
        self.tree_of.writer = connection.session
        return super().handle(request, connection)

    def _end(self, session: int) -> None:
        self.tree_of.writer = session
        super()._end(session)


class StoreOwner:
    """Serves the tree; written data and the sessions in it survive it."""

    def __init__(self, network: Network, zookeeper: ZooKeeper) -> None:
        self._network, self._zookeeper = network, zookeeper
        self._process: Process | None = None
        self._server: RecordedServer

    @property
    def is_up(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        self._process = Process(HOST)
        self._process.context.run(self._serve)

    def _serve(self) -> None:
        loop = self._network.loop
        chance = Random(self._network.chance.random())
        RecordedServer.tree_of = self._zookeeper
        tree = self._zookeeper.tree
        self._server = RecordedServer(loop, tree, SimulatedClock(loop), chance)
        self._server.listen(self._network.bind(HOST, PORT))  # type: ignore[arg-type]

    def kill(self) -> None:
        assert self._process is not None
        process, self._process = self._process, None
        process.is_alive = False
        self._network.process_died(process, reported=True)
        self._server.close()


class SimulatedWorker(SimulatedBroker):
    """One of the machine's brokers."""

    @property
    def _store_settings(self) -> dict[str, str]:
        return {"controlled.shutdown.enable": "false", **SYNCED}

    def machine(self) -> Machine:
        return replace(super().machine(), is_worker=True)

    @asynccontextmanager
    async def _open_store(
        self, config: ZookeeperConfig, __: Path, ___: Files, ____: Clock
    ) -> AsyncIterator[MetadataStore]:
        store = SharedStore(
            self.loop,
            lambda: self._network.connect_here(HOST, PORT),  # type: ignore[arg-type, return-value]
            f"worker {self.number}",
            config.zookeeper_session_timeout_ms,
        )
        try:
            await start_and_connect(store, CONNECT_MS)
            yield cast("MetadataStore", store)
        finally:
            await store.close()
