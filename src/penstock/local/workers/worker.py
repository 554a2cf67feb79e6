"""The process of a worker: a broker on shared sockets and a shared store."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from penstock.broker.app import new_event_loop
from penstock.broker.machine import Machine
from penstock.broker.startup.metadata_store import metadata_store
from penstock.broker.startup.state_file import BrokerState
from penstock.broker.until_stopped import until_stopped
from penstock.clock import Clock
from penstock.config.listener import Endpoint
from penstock.config.network import NetworkConfig
from penstock.config.sources import Resolved
from penstock.config.zookeeper import ZookeeperConfig
from penstock.local.services import LocalServices
from penstock.local.workers.child import Channel, ProcessReport, listen_for_stop
from penstock.log.files import Files
from penstock.metadata.shared.store import open_shared
from penstock.metadata.store import MetadataStore

CONNECT_MS = 60_000
"""Long, because the store's owner may be restarting."""


class Worker(Struct, frozen=True):
    """One of a machine's workers."""

    index: int
    settings: Resolved
    home: Path
    """Its folder in the first log directory."""
    directory: Path
    """The data directory of all workers."""
    store: Path | None
    """The socket of the store's owner; None with ZooKeeper."""
    sockets: Mapping[str, socket.socket]
    """Its own listening sockets, by listener. The supervisor holds them, so they
    outlive the process.
    """
    shared: Mapping[str, socket.socket]

    @property
    def name(self) -> str:
        return f"worker {self.index}"


def run_worker(worker: Worker, channel: Channel) -> None:
    """Run the broker; returns when it was asked to stop."""

    def on_ready(state: BrokerState) -> None:
        channel.send(ProcessReport(state))

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(
            until_stopped(
                worker.settings,
                worker.home,
                lambda stop: listen_for_stop(channel, stop),
                on_ready,
                _machine(worker),
                # The first worker runs the services for the whole machine.
                alongside=LocalServices(worker.settings.config, worker.directory).run_alongside
                if worker.index == 0
                else None,
            )
        )


def _machine(worker: Worker) -> Machine:
    def bind(endpoint: Endpoint, _network: NetworkConfig) -> socket.socket:
        return worker.sockets[endpoint.listener]

    @asynccontextmanager
    async def open_store(
        config: ZookeeperConfig, directory: Path, files: Files, clock: Clock
    ) -> AsyncIterator[MetadataStore]:
        if worker.store is None:
            async with metadata_store(config, directory, files, clock) as store:
                yield store
        else:
            async with open_shared(
                worker.store,
                worker.name,
                session_timeout_ms=config.zookeeper_session_timeout_ms,
                connection_timeout_ms=CONNECT_MS,
            ) as shared:
                yield shared

    return Machine(bind=bind, open_store=open_store, is_worker=True, shared_sockets=worker.shared)
