"""Opens a broker's session, after ending that of its former process and creating the chroot."""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

from penstock.config.connect_string import ConnectString
from penstock.config.jaas import jaas_options, jaas_tokens
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.metadata.connecting import start_and_connect
from penstock.metadata.errors import NodeExists
from penstock.metadata.paths import with_parents
from penstock.metadata.zookeeper.session import OPEN, SessionKey, SessionThread, StoreSecurity
from penstock.metadata.zookeeper.session_file import SessionFile
from penstock.metadata.zookeeper.store import ZooKeeperStore

logger = logging.getLogger(__name__)

_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_SECTION = re.compile(r"Client\s*\{(.*)\}\s*;?", re.DOTALL)


class ZooKeeperUnreachable(ConfigError):
    """No server of the ensemble answered in time."""

    def __init__(self, servers: ConnectString, timeout_ms: int, refusal: str = "") -> None:
        if refusal:
            super().__init__(f"zookeeper.connect: {servers.addresses}: {refusal}")
            return
        super().__init__(
            f"zookeeper.connect: no ZooKeeper answered at {servers.addresses} within {timeout_ms}"
            " ms; start it, correct the addresses, or raise zookeeper.connection.timeout.ms"
        )


async def open_store(
    config: ZookeeperConfig, directory: Path | None = None, tls: ssl.SSLContext | None = None
) -> ZooKeeperStore:
    """A connected store. `directory` is a log directory that this process has locked: the session
    of a killed process that used it ends at once, with its ephemeral nodes.
    """
    security = store_security(config, tls)
    servers = ConnectString.parse(config.zookeeper_connect or "")
    file = None if directory is None else SessionFile(directory)
    if file is not None and (former := file.read()) is not None:
        await asyncio.to_thread(end_former_session, servers, former, config, security)
        file.delete()
    if servers.chroot:
        await _make_chroot(servers, config, security)
    return await _connected(servers, config, security, file)


def store_security(config: ZookeeperConfig, tls: ssl.SSLContext | None) -> StoreSecurity:
    """The broker's credentials for ZooKeeper; required if nodes are to be protected."""
    name, login = "penstock.zookeeper.jaas.config", config.penstock_zookeeper_jaas_config
    if login is None:
        if config.zookeeper_set_acl and config.zookeeper_ssl_keystore_location is None:
            raise ConfigError(
                f"zookeeper.set.acl is true, but neither {name} nor zookeeper.ssl.keystore.location"
                " says who this broker is"
            )
        return StoreSecurity(tls)
    text = login.value.strip()
    section = _SECTION.fullmatch(text)
    tokens = jaas_tokens(name, section[1] if section else text)
    if not tokens or tokens[0] != _MODULE:
        raise ConfigError(f"{name} must begin with {_MODULE}")
    options = jaas_options(name, tokens, repeatable=False)
    if not options.get("username") or "password" not in options:
        raise ConfigError(f"{name} has no username and password")
    return StoreSecurity(tls, options["username"], options["password"])


def end_former_session(
    servers: ConnectString, former: SessionKey, config: ZookeeperConfig, security: StoreSecurity
) -> None:
    """Resume the session and close it, which deletes its ephemeral nodes. Blocks.

    If it has expired, ZooKeeper has deleted them already; then a new session is opened and closed.
    """
    settled = _Settled()
    session = SessionThread(servers, config.zookeeper_session_timeout_ms, settled, former, security)
    session.start_async()
    try:
        if not settled.wait(_timeout_ms(config) / 1000):
            raise ZooKeeperUnreachable(servers, _timeout_ms(config), session.refusal)
    finally:
        session.end()
    logger.info("ended session %#x of the former process", former.id)


async def _make_chroot(
    servers: ConnectString, config: ZookeeperConfig, security: StoreSecurity
) -> None:
    """Create the chroot in a session at the root: under a missing one every request fails."""
    async with opened(replace(servers, chroot=""), config, security) as root:
        for path in with_parents(servers.chroot):
            if not await root.exists(path):
                with suppress(NodeExists):  # another broker starts at the same time
                    await root.create(path)


@asynccontextmanager
async def opened(
    servers: ConnectString, config: ZookeeperConfig, security: StoreSecurity = OPEN
) -> AsyncIterator[ZooKeeperStore]:
    store = await _connected(servers, config, security)
    try:
        yield store
    finally:
        await store.close()


async def _connected(
    servers: ConnectString,
    config: ZookeeperConfig,
    security: StoreSecurity,
    file: SessionFile | None = None,
) -> ZooKeeperStore:
    store = ZooKeeperStore(
        servers,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        max_in_flight=config.zookeeper_max_in_flight_requests,
        session_file=file,
        security=security,
        protects=config.zookeeper_set_acl,
    )
    try:
        await start_and_connect(store, _timeout_ms(config))
    except BaseException as error:
        await store.close()
        if isinstance(error, TimeoutError):
            raise ZooKeeperUnreachable(servers, _timeout_ms(config), store.refusal) from None
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
