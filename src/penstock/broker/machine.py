"""The machine under a broker: its disk, network, clock and randomness.

The composition root takes all of these from here. A simulation can pass its own machine and run a
whole broker, whose decisions depend on nothing else.
"""

import asyncio
import random
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from penstock.broker.net.server import Server, bind
from penstock.broker.startup.file_limit import FileShares, raised_file_limit
from penstock.broker.startup.metadata_store import metadata_store
from penstock.clock import Clock, SystemClock
from penstock.config.listener import Endpoint
from penstock.config.network import NetworkConfig
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.log.boot_id import kernel_boot_id
from penstock.log.disk import DiskFiles
from penstock.log.files import Files
from penstock.log.flush import Flusher
from penstock.metadata.store import MetadataStore

OpenStore: TypeAlias = Callable[
    [ZookeeperConfig, Path, Files, Clock], AbstractAsyncContextManager[MetadataStore]
]


def make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--dir {directory}: {error.strerror}") from None


def threaded_flusher(loop: asyncio.AbstractEventLoop) -> Flusher:
    return Flusher(loop.call_soon_threadsafe)


def disk_files(shares: FileShares) -> Files:
    return DiskFiles(shares.held)


class Machine(Struct, frozen=True):
    """The defaults use the real machine of this process."""

    clock: Clock = field(default_factory=SystemClock)
    file_limit: Callable[[], int] = raised_file_limit
    files: Callable[[FileShares], Files] = disk_files
    boot_id: Callable[[], str] = kernel_boot_id
    chance: random.Random = field(default_factory=random.SystemRandom)
    make_directory: Callable[[Path], None] = make_directory
    bind: Callable[[Endpoint, NetworkConfig], socket.socket] = bind
    server: type[Server] = Server
    flusher: Callable[[asyncio.AbstractEventLoop], Flusher] = threaded_flusher
    open_store: OpenStore = metadata_store
    is_worker: bool = False
    """Whether other brokers of this machine share its metadata store, embedded or not."""
    shared_sockets: Mapping[str, socket.socket] = {}
    """By listener: sockets on which all workers of a machine accept connections."""
