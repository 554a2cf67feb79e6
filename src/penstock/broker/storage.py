"""The first step of a start: opens and checks the metadata store and the log directories."""

import logging
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from penstock.broker.cluster import Cluster
from penstock.broker.machine import Machine
from penstock.broker.replicas.cordoned import check_cordoned, is_cordoned
from penstock.broker.startup import decision, identity, log_dir_ownership
from penstock.broker.startup.file_limit import FileShares, shares
from penstock.broker.startup.log_epochs import raise_epochs
from penstock.broker.startup.producer_ids import skip_lost_producer_ids
from penstock.config.broker import BrokerConfig
from penstock.config.sources import Resolved
from penstock.config.topic import TopicConfig
from penstock.controller import broker_registration
from penstock.errors import ConfigError
from penstock.log.files import Files
from penstock.log.loading import load_logs
from penstock.log.open_segments import OpenSegments
from penstock.log.store import LogStore
from penstock.metadata.reader import read_image
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId, Uuid

logger = logging.getLogger(__name__)


class Storage(Struct, frozen=True):
    """A broker's disk state and metadata store, and the ids that follow from them."""

    broker_id: BrokerId
    cluster_id: str
    metadata: MetadataStore
    cluster: Cluster
    files: Files
    file_shares: FileShares
    logs: LogStore
    open_segments: OpenSegments
    unclean_shutdown: bool
    """In-sync replicas may lack records, or whole logs, that they had before the last stop."""
    is_standalone: bool
    """Whether no other broker uses the metadata store."""


async def open_storage(
    stack: AsyncExitStack, machine: Machine, resolved: Resolved, directory: Path
) -> Storage:
    """Open and check storage; refuses, before any change, directories and a store of different
    clusters.

    The stack releases everything in reverse order.
    """
    config, clock, chance = resolved.config, machine.clock, machine.chance
    is_standalone = config.zookeeper.zookeeper_connect is None and not machine.is_worker
    file_shares = shares(machine.file_limit())
    files = machine.files(file_shares)
    metadata = await stack.enter_async_context(
        machine.open_store(config.zookeeper, directory, files, clock)
    )
    check_cordoned(config.identity)
    open_segments = OpenSegments(file_shares.segments)

    def topic_config(topic: str) -> TopicConfig:
        return cluster.topic_config(topic)  # `cluster` is bound by then: logs load after the image

    logs = LogStore(
        files,
        [Path(each).absolute() for each in config.identity.directories],
        topic_config,
        boot_id=machine.boot_id(),
        open_segments=open_segments,
        chance=chance,
        is_cordoned=lambda path: is_cordoned(cluster.config.identity, path),
    )
    stack.callback(log_dir_ownership.release, logs)
    start = await log_dir_ownership.verified(
        logs, metadata, config, directory, chance, is_standalone=is_standalone
    )
    await broker_registration.prepare_tree(metadata)
    broker_id = start.broker_id
    if broker_id is None:
        broker_id = await fresh_broker_id(config, metadata, is_standalone=is_standalone)
    static = {**resolved.texts(), "broker.id": f"{broker_id}", "node.id": f"{broker_id}"}
    cluster_id = await broker_registration.cluster_id(
        metadata, start.cluster_id, Uuid(chance.randbytes(16))
    )
    cluster = Cluster(broker_id, static, (await read_image(metadata)).without_deleted())
    load_logs(logs, clock.now_ms())
    await raise_epochs(metadata, cluster.image, broker_id, logs)
    await skip_lost_producer_ids(metadata, broker_id, logs, clock.now_ms())
    # In a cluster a directory may be missing from log.dirs, and its checkpoints with it.
    has_all_dirs = config.zookeeper.zookeeper_connect is None
    created = logs.checkpointed if has_all_dirs and logs.was_closed else None
    lost = decision.lost_replicas(cluster.image, broker_id, logs.logs, created)
    if lost:
        logger.warning(
            "%d in-sync replicas have no log on this broker, %s among them", len(lost), min(lost)
        )
        logs.mark_unclean_shutdown()
    unclean_shutdown = logs.had_unclean_shutdown
    if is_standalone:  # no other replica has the missing records
        logs.clear_unclean_shutdown()
    stack.callback(logs.close)
    check_directories(logs)
    await log_dir_ownership.record(
        logs, metadata, broker_id, cluster_id, chance, is_standalone=is_standalone
    )
    return Storage(
        broker_id,
        cluster_id,
        metadata,
        cluster,
        files,
        file_shares,
        logs,
        open_segments,
        unclean_shutdown=unclean_shutdown,
        is_standalone=is_standalone,
    )


async def fresh_broker_id(
    config: BrokerConfig, metadata: MetadataStore, *, is_standalone: bool
) -> BrokerId:
    """An id for a broker without `broker.id`; a single node gets the first id."""
    if is_standalone:
        return identity.FIRST_BROKER
    if not config.identity.broker_id_generation_enable:
        raise ConfigError("broker.id is not set, and broker.id.generation.enable is false")
    return await broker_registration.new_broker_id(metadata, config.identity.reserved_broker_max_id)


def check_directories(logs: LogStore) -> None:
    """Refuse to start without any working log directory."""
    if not logs.online:
        reasons = "; ".join(str(each.failure) for each in logs.dirs)  # each text names its path
        raise ConfigError(f"log.dirs: no directory can be used: {reasons}")
