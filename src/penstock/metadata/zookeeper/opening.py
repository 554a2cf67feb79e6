"""How a broker comes to its session: it ends the one that it left behind, makes the chroot, and
opens its own.
"""

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
from penstock.metadata.paths import with_parents
from penstock.metadata.refusal import NodeExists
from penstock.metadata.store import SessionState
from penstock.metadata.zookeeper.session import SessionKey, SessionThread
from penstock.metadata.zookeeper.session_file import SessionFile
from penstock.metadata.zookeeper.store import ZooKeeperStore

logger = logging.getLogger(__name__)


class ZooKeeperUnreachable(ConfigError):
    """No server of the ensemble answered in time."""

    def __init__(self, where: ConnectString, timeout_ms: int) -> None:
        super().__init__(
            f"zookeeper.connect: no ZooKeeper answered at {where.addresses} within {timeout_ms} ms;"
            " start it, correct the addresses, or raise zookeeper.connection.timeout.ms"
        )


async def open_store(config: ZookeeperConfig, directory: Path | None = None) -> ZooKeeperStore:
    """A store that is connected. `directory`: a log directory that this process has locked; what
    a process that was killed had registered from there goes at once.
    """
    if config.zookeeper_set_acl:
        raise ConfigError("zookeeper.set.acl: nodes are not protected yet; set it to false")
    where = ConnectString.parse(config.zookeeper_connect or "")
    file = None if directory is None else SessionFile(directory)
    if file is not None and (former := file.recalled()) is not None:
        await asyncio.to_thread(end_former_session, where, former, config)
        file.forget()
    if where.chroot:
        await _make_chroot(where, config)
    return await _connected(where, config, file)


def end_former_session(where: ConnectString, former: SessionKey, config: ZookeeperConfig) -> None:
    """Take the session up and close it, which deletes what it owned. Blocks.

    If it is over, ZooKeeper has deleted all that before, and another is opened and closed.
    """
    settled = _Settled()
    session = SessionThread(where, config.zookeeper_session_timeout_ms, settled, former)
    session.start_async()
    try:
        if not settled.wait(_patience_ms(config) / 1000):
            raise ZooKeeperUnreachable(where, _patience_ms(config))
    finally:
        session.end()
    logger.info("ended the session %#x, which the last process had left", former.id)


async def _make_chroot(where: ConnectString, config: ZookeeperConfig) -> None:
    """In a session of its own, at the root: below a chroot that is missing nothing can be asked."""
    async with _opened(replace(where, chroot=""), config) as root:
        for path in with_parents(where.chroot):
            if not await root.exists(path):
                with suppress(NodeExists):  # another broker starts as well
                    await root.create(path)


@asynccontextmanager
async def _opened(where: ConnectString, config: ZookeeperConfig) -> AsyncIterator[ZooKeeperStore]:
    store = await _connected(where, config)
    try:
        yield store
    finally:
        await store.close()


async def _connected(
    where: ConnectString, config: ZookeeperConfig, file: SessionFile | None = None
) -> ZooKeeperStore:
    store = ZooKeeperStore(
        where,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        max_in_flight=config.zookeeper_max_in_flight_requests,
        session_file=file,
    )
    came = asyncio.Event()
    news = store.watch_session(lambda state: came.set() if _is_connected(state) else None)
    store.start()
    try:
        async with asyncio.timeout(_patience_ms(config) / 1000):
            await came.wait()
    except BaseException as error:
        await store.close()
        if isinstance(error, TimeoutError):
            raise ZooKeeperUnreachable(where, _patience_ms(config)) from None
        raise
    finally:
        news.cancel()
    return store


def _is_connected(state: SessionState) -> bool:
    return state is SessionState.CONNECTED


def _patience_ms(config: ZookeeperConfig) -> int:
    return config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms


class _Settled:
    """Waits until a former session was taken up, or has proved to be over."""

    def __init__(self) -> None:
        self._event = Event()
        self.wait = self._event.wait

    def connected(self, connection: int, key: SessionKey) -> None:  # noqa: ARG002
        self._event.set()

    def disconnected(self) -> None: ...

    def expired(self) -> None: ...
