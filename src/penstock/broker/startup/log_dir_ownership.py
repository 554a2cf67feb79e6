"""Verifies at start that the log directories and the metadata store belong together."""

from pathlib import Path
from random import Random

from penstock.broker.startup import identity
from penstock.broker.startup.decision import Refuse, Serve, StoredMetadata, decide
from penstock.broker.startup.known_log_dirs import read_known_log_dirs, write_known_log_dirs
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.log.found import scan_log_dirs, set_aside
from penstock.log.store import LogStore
from penstock.metadata.reader import read_image, read_topics
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import FILE_NAME
from penstock.types import BrokerId, Uuid, uuid_text


class StartRefused(ConfigError):
    """Log directories and metadata do not belong together, or another process uses them."""


async def verified(
    logs: LogStore,
    metadata: MetadataStore,
    config: BrokerConfig,
    home: Path,
    chance: Random,
    *,
    is_standalone: bool,
) -> Serve:
    """Inspect and decide; raises before anything is changed."""
    known = await stored_metadata(metadata, config, home, is_standalone=is_standalone)
    outcome = decide(scan_log_dirs(logs.files, logs.dirs), known, config.identity.number, home)
    if isinstance(outcome, Refuse):
        raise StartRefused(outcome.why)
    for log in outcome.stray:
        set_aside(logs.files, log, "has the id of a deleted topic whose name was reused", chance)
    return outcome


def release(logs: LogStore) -> None:
    """Unlock directories that were not closed; the next start finds them unchanged."""
    for log_dir in logs.dirs:
        log_dir.owner.release(broker_epoch=None)


async def stored_metadata(
    metadata: MetadataStore, config: BrokerConfig, home: Path, *, is_standalone: bool
) -> StoredMetadata:
    zookeeper = config.zookeeper.zookeeper_connect
    image = await read_image(metadata)
    deleting = await read_topics(metadata, image.deleting - image.topics.keys(), image.brokers)
    return StoredMetadata(
        f"the metadata in {home / FILE_NAME}" if zookeeper is None else f"ZooKeeper at {zookeeper}",
        is_standalone,
        image.cluster_id,
        {**image.topics, **deleting},
        image.deleting,
        await read_known_log_dirs(metadata) if is_standalone else {},
    )


async def record(
    logs: LogStore,
    metadata: MetadataStore,
    broker_id: BrokerId,
    cluster_id: str,
    chance: Random,
    *,
    is_standalone: bool,
) -> None:
    """Write the ids of broker and cluster into the directories; a single broker records these in
    its store.
    """

    def fresh_id() -> str:
        return uuid_text(Uuid(chance.randbytes(16)))

    paths = identity.write(
        logs.files,
        [each.path for each in logs.online],
        broker_id,
        cluster_id,
        fresh_id if is_standalone else None,
    )
    if is_standalone:
        # While a directory is offline, a missing one would go unnoticed, so keep all known ones.
        is_whole = len(logs.online) == len(logs.dirs)
        known = {} if is_whole else await read_known_log_dirs(metadata)
        await write_known_log_dirs(metadata, {**known, **paths})
