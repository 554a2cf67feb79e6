"""Opens the metadata store: embedded in the data directory, or ZooKeeper."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.broker.key_store import load_own, load_trusted, read_store
from penstock.clock import Clock
from penstock.config.extra import install
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
    try:  # a single broker does not need kazoo
        from penstock.metadata.zookeeper.opening import open_store
    except ImportError as error:
        raise ConfigError(
            f"zookeeper.connect needs the package {error.name}: {install('cluster')}"
        ) from None
    # Only one process may resume the session that the last one left in this directory.
    release = files.lock(directory / SESSION_LOCK)
    try:
        store = await open_store(config, directory, _tls(config))
        try:
            yield store
        finally:
            await store.close()
    finally:
        release()


def _tls(config: ZookeeperConfig) -> ssl.SSLContext | None:
    """The TLS context for ZooKeeper; None for plain text."""
    own, trusted = config.zookeeper_ssl_keystore_location, config.zookeeper_ssl_truststore_location
    if not config.zookeeper_ssl_client_enable:
        if own or trusted:
            raise ConfigError(
                "zookeeper.ssl.keystore and .truststore have no effect while "
                "zookeeper.ssl.client.enable is false"
            )
        return None
    prefix = "zookeeper.ssl."
    context = ssl.create_default_context()
    if trusted is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts only these, not the system's
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        name, password = f"{prefix}truststore.location", config.zookeeper_ssl_truststore_password
        pem = read_store(name, trusted, f"{prefix}truststore.password", password)
        load_trusted(context, name, pem)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = bool(config.zookeeper_ssl_endpoint_identification_algorithm)
    if own is not None:
        name, password = f"{prefix}keystore.location", config.zookeeper_ssl_keystore_password
        password_name = f"{prefix}keystore.password"
        pem = read_store(name, own, password_name, password)
        load_own(context, name, pem, password_name, password)
    return context
