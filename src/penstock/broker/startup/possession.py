"""How a broker takes possession of its log directories: look, decide, and tie them to its store."""

from pathlib import Path
from random import Random

from penstock.broker.startup import identity
from penstock.broker.startup.decision import KnownStore, Refuse, Serve, decide
from penstock.broker.startup.log_dir_ties import read_ties, write_ties
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.log.found import look, set_aside
from penstock.log.store import LogStore
from penstock.metadata.reader import read_image, read_topics
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import FILE_NAME
from penstock.types import BrokerId, Uuid, uuid_text


class StartRefused(ConfigError):
    """Log directories and metadata do not belong together, or somebody else works there."""


async def decided(
    logs: LogStore, metadata: MetadataStore, config: BrokerConfig, home: Path
) -> Serve:
    """What is found decides; refused before anything is changed."""
    known = await _known(metadata, config, home)
    outcome = decide(look(logs.files, logs.dirs), known, config.identity.number, home)
    if isinstance(outcome, Refuse):
        raise StartRefused(outcome.why)
    for log in outcome.stray:
        set_aside(logs.files, log, "is of a deleted topic whose name was used again")
    return outcome


def unlock(logs: LogStore) -> None:
    """Let go of directories that were not closed; the next start finds them as this one did."""
    for log_dir in logs.dirs:
        log_dir.release(broker_epoch=None)


async def _known(metadata: MetadataStore, config: BrokerConfig, home: Path) -> KnownStore:
    zookeeper = config.zookeeper.zookeeper_connect
    image = await read_image(metadata)
    going = await read_topics(metadata, image.deleting - image.topics.keys(), image.brokers)
    return KnownStore(
        f"the metadata in {home / FILE_NAME}" if zookeeper is None else f"ZooKeeper at {zookeeper}",
        zookeeper is None,
        image.cluster_id,
        {**image.topics, **going},
        image.deleting,
        {} if zookeeper is not None else await read_ties(metadata),
    )


async def tie(
    logs: LogStore,
    metadata: MetadataStore,
    broker_id: BrokerId,
    cluster_id: str,
    chance: Random,
    *,
    is_alone: bool,
) -> None:
    """Let directories name the cluster, and the store of a broker alone its directories."""

    def fresh_id() -> str:
        return uuid_text(Uuid(chance.randbytes(16)))

    paths = identity.remember(
        logs.files,
        [each.path for each in logs.online],
        broker_id,
        cluster_id,
        fresh_id if is_alone else None,
    )
    if is_alone:
        # While one is offline nobody asks whether another is missing: none is forgotten.
        is_whole = len(logs.online) == len(logs.dirs)
        kept = {} if is_whole else await read_ties(metadata)
        await write_ties(metadata, {**kept, **paths})
