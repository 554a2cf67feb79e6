"""Opens the metadata store: embedded in the data directory, or ZooKeeper."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.clock import Clock
from penstock.config.zookeeper import ZookeeperConfig
from penstock.errors import ConfigError
from penstock.log.files import Files
from penstock.metadata.embedded import open_embedded
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import FILE_NAME

SESSION_LOCK = ".zookeeper-session.lock"


@asynccontextmanager
async def metadata_store(
    config: ZookeeperConfig, directory: Path, files: Files, clock: Clock
) -> AsyncIterator[MetadataStore]:
    """The configured store, open for the duration of the block."""
    if config.zookeeper_connect:
        async with _zookeeper(config, directory, files) as store:
            yield store
    else:
        async with open_embedded(directory / FILE_NAME, clock) as embedded:
            yield embedded


@asynccontextmanager
async def _zookeeper(
    config: ZookeeperConfig, directory: Path, files: Files
) -> AsyncIterator[MetadataStore]:
    try:  # a broker alone does not need kazoo
        from penstock.metadata.zookeeper.opening import open_store
    except ImportError as error:
        raise ConfigError(
            f"zookeeper.connect needs the package {error.name}: pip install '.[cluster]'"
        ) from None
    # Only one process may resume the session that the last one left in this directory.
    release = files.lock(directory / SESSION_LOCK)
    try:
        store = await open_store(config, directory)
        try:
            yield store
        finally:
            await store.close()
    finally:
        release()
