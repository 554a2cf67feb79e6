"""Registers the topics of another broker's log directories in this broker's metadata.

The directories stay as they are; a broker started on them serves their records.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random, SystemRandom

from penstock.broker.startup.identity import FIRST_BROKER
from penstock.broker.startup.known_log_dirs import read_known_log_dirs, write_known_log_dirs
from penstock.clock import Clock, SystemClock
from penstock.config.broker import broker_config
from penstock.config.effective import BrokerLayers
from penstock.controller import broker_registration
from penstock.controller.controller import Controller
from penstock.controller.found_topics import FoundTopic
from penstock.controller.state_change import StateChange
from penstock.controller.topics import PlannedTopic, checked_configs
from penstock.errors import ConfigError, KafkaError
from penstock.log.inspection.adopt import AdoptedTopic, AdoptedTopics
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.image import ClusterImage
from penstock.metadata.lost_producer_ids import beyond_lost
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import FILE_NAME, Tree
from penstock.types import BrokerId, TopicPartition, Uuid, parse_uuid, random_uuid

INTERNAL: Mapping[str, Mapping[str, str]] = {
    "__consumer_offsets": {"cleanup.policy": "compact", "segment.bytes": "104857600"},
    "__transaction_state": {"cleanup.policy": "compact", "segment.bytes": "104857600"},
    "__share_group_state": {"retention.ms": "-1", "segment.bytes": "104857600"},
    "__penstock_delay_state": {"cleanup.policy": "compact", "segment.bytes": "16777216"},
    "__penstock_redrive_state": {"cleanup.policy": "compact", "segment.bytes": "16777216"},
    "_schemas": {"cleanup.policy": "compact"},
    "penstock-progress": {"cleanup.policy": "compact"},
}
"""Settings without which retention would delete the state of coordinators, services and the SDK.
KRaft's metadata log has them too, but not every directory has that log.
"""


class MetadataOfAnotherBroker(ConfigError):
    """The metadata belongs to another broker."""


class _NoBrokers:
    """Sends nothing: no broker runs, and the next start finds everything in the store."""

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:  # noqa: ARG002
        return ()

    def resign(self) -> None: ...


async def adopt(
    directory: Path,
    found: AdoptedTopics,
    configs: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    chance: Random | None = None,
) -> list[PlannedTopic | KafkaError]:
    """Register the topics in the metadata of `directory`; returns for each the topic or the error.

    If some topics are new, fully registered ones are left out. `configs` apply to all topics except
    internal ones, and override those that were found. Refused while a broker uses the metadata, or
    if it belongs to another cluster or broker.

    The directories are recorded first: a start without them would serve these topics empty.
    """
    clock, chance = clock or SystemClock(), chance or SystemRandom()
    topics = [_found(each, configs or {}) for each in found.topics]
    brokers = [BrokerId(each) for each in found.broker_ids] or [FIRST_BROKER]
    async with _active_controller(directory, found.cluster_id, brokers, clock, chance) as (
        store,
        controller,
    ):
        if not found.are_workers:  # workers share the metadata of their cluster
            _check_owner(controller.image, brokers[0], directory)
        new = [each for each in topics if not _is_registered(each, controller.image)]
        topics = new or topics
        known = await read_known_log_dirs(store)
        await write_known_log_dirs(store, {**known, **found.log_dirs})
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(controller.run())
            outcomes = await controller.register_found(topics)
            running.cancel()
    return outcomes


@asynccontextmanager
async def _active_controller(
    directory: Path,
    cluster_id: str | None,
    brokers: Sequence[BrokerId],
    clock: Clock,
    chance: Random,
) -> AsyncIterator[tuple[MetadataStore, Controller]]:
    """The metadata, and an active controller without a running broker."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from None
    tree = Tree.open(directory / FILE_NAME, clock)
    try:
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        await broker_registration.prepare_tree(store)
        await broker_registration.cluster_id(store, cluster_id, Uuid(random_uuid(chance).bytes))
        registration = BrokerRegistration.of((), clock.now_ms())
        for broker in brokers:
            await broker_registration.register(store, broker, registration)
        await _skip_producer_ids(store, brokers[0], clock.now_ms())
        controller = Controller(
            store,
            brokers[0],
            _NoBrokers(),
            config=broker_config({}).controller,
            static={},
            clock=clock,
            chance=chance,
        )
        await controller.start()
        yield store, controller
        await store.close()
    finally:
        tree.close()


async def _skip_producer_ids(store: MetadataStore, broker: BrokerId, now_ms: int) -> None:
    node = await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
    await store.set(node.path, beyond_lost(node, broker, now_ms))


def _is_registered(topic: FoundTopic, image: ClusterImage) -> bool:
    known = image.topics.get(topic.name)
    return (
        known is not None
        and known.id == topic.id
        and topic.last_epochs.keys() <= known.partitions.keys()
    )


def _check_owner(image: ClusterImage, broker: BrokerId, directory: Path) -> None:
    others = {
        replica
        for topic in image.topics.values()
        for partition in topic.partitions.values()
        for replica in partition.replicas
    } - {broker}
    if others:
        raise MetadataOfAnotherBroker(
            f"{directory} is the metadata of broker {min(others)}, the log directories are those "
            f"of broker {broker}"
        )


def _found(topic: AdoptedTopic, given: Mapping[str, str]) -> FoundTopic:
    internal = INTERNAL.get(topic.name)
    configs = {**topic.configs, **given} if internal is None else {**internal, **topic.configs}
    return FoundTopic(
        topic.name,
        parse_uuid(topic.topic_id),
        {each.partition: each.last_epoch for each in topic.partitions},
        checked_configs(configs, BrokerLayers({}, {}, {})),
        {each.partition: tuple(map(BrokerId, each.replicas)) for each in topic.partitions},
    )
