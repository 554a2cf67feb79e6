"""The brokers that are registered in ZooKeeper, for commands that know no broker."""

import asyncio

from penstock.config.connect_string import ConnectString
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.metadata.errors import NoNode
from penstock.metadata.image import Broker
from penstock.metadata.reader import read_brokers
from penstock.metadata.zookeeper.opening import opened


def registered_brokers(connect: str, timeout_ms: int) -> list[Broker]:
    """The live brokers under `host:port/chroot`; nothing is written. Blocks."""
    config = ZookeeperConfig(
        zookeeper_connect=connect,
        zookeeper_connection_timeout_ms=timeout_ms,
        zookeeper_session_timeout_ms=timeout_ms,
    )

    async def read() -> list[Broker]:
        async with opened(ConnectString.parse(connect), config) as store:
            try:
                return list((await read_brokers(store)).values())
            except NoNode:
                return []

    found = asyncio.run(read())
    if not found:
        raise ConfigError(f"no broker is registered in ZooKeeper at {connect}")
    return found
