"""Opens a broker's session, after ending that of its former process and creating the chroot."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

from penstock.config.connect_string import ConnectString
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.metadata.connecting import start_and_connect
from penstock.metadata.errors import NodeExists
from penstock.metadata.paths import with_parents
from penstock.metadata.zookeeper.session import SessionKey, SessionThread
from penstock.metadata.zookeeper.session_file import SessionFile
from penstock.metadata.zookeeper.store import ZooKeeperStore

logger = logging.getLogger(__name__)


class ZooKeeperUnreachable(ConfigError):
    """No server of the ensemble answered in time."""

    def __init__(self, servers: ConnectString, timeout_ms: int) -> None:
        super().__init__(
            f"zookeeper.connect: no ZooKeeper answered at {servers.addresses} within {timeout_ms}"
            " ms; start it, correct the addresses, or raise zookeeper.connection.timeout.ms"
        )


async def open_store(config: ZookeeperConfig, directory: Path | None = None) -> ZooKeeperStore:
    """A connected store. `directory` is a log directory that this process has locked: the session
    of a killed process that used it ends at once, with its ephemeral nodes.
    """
    if config.zookeeper_set_acl:
        raise ConfigError("zookeeper.set.acl: nodes are not protected yet; set it to false")
    servers = ConnectString.parse(config.zookeeper_connect or "")
    file = None if directory is None else SessionFile(directory)
    if file is not None and (former := file.read()) is not None:
        await asyncio.to_thread(end_former_session, servers, former, config)
        file.delete()
    if servers.chroot:
        await _make_chroot(servers, config)
    return await _connected(servers, config, file)


def end_former_session(servers: ConnectString, former: SessionKey, config: ZookeeperConfig) -> None:
    """Resume the session and close it, which deletes its ephemeral nodes. Blocks.

    If it has expired, ZooKeeper has deleted them already; then a new session is opened and closed.
    """
    settled = _Settled()
    session = SessionThread(servers, config.zookeeper_session_timeout_ms, settled, former)
    session.start_async()
    try:
        if not settled.wait(_timeout_ms(config) / 1000):
            raise ZooKeeperUnreachable(servers, _timeout_ms(config))
    finally:
        session.end()
    logger.info("ended session %#x of the former process", former.id)


async def _make_chroot(servers: ConnectString, config: ZookeeperConfig) -> None:
    """In a separate session at the root: under a missing chroot every request fails."""
    async with opened(replace(servers, chroot=""), config) as root:
        for path in with_parents(servers.chroot):
            if not await root.exists(path):
                with suppress(NodeExists):  # another broker starts at the same time
                    await root.create(path)


@asynccontextmanager
async def opened(servers: ConnectString, config: ZookeeperConfig) -> AsyncIterator[ZooKeeperStore]:
    store = await _connected(servers, config)
    try:
        yield store
    finally:
        await store.close()


async def _connected(
    servers: ConnectString, config: ZookeeperConfig, file: SessionFile | None = None
) -> ZooKeeperStore:
    store = ZooKeeperStore(
        servers,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        max_in_flight=config.zookeeper_max_in_flight_requests,
        session_file=file,
    )
    try:
        await start_and_connect(store, _timeout_ms(config))
    except BaseException as error:
        await store.close()
        if isinstance(error, TimeoutError):
            raise ZooKeeperUnreachable(servers, _timeout_ms(config)) from None
        raise
    return store


def _timeout_ms(config: ZookeeperConfig) -> int:
    return config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms


class _Settled:
    """Waits until a former session was resumed, or has turned out to be expired."""

    def __init__(self) -> None:
        self._event = Event()
        self.wait = self._event.wait

    def connected(self, connection: int, key: SessionKey) -> None:  # noqa: ARG002
        self._event.set()

    def disconnected(self) -> None: ...

    def expired(self) -> None: ...
