"""Reads the cluster's image from the store, in a few batches whatever its size.

The batches are read at different moments. For an exact image, watch first and then read.
Malformed nodes are skipped with a warning.
"""

import logging
from collections.abc import Container, Iterable, Iterator

from msgspec.structs import replace

from penstock.metadata import paths
from penstock.metadata.client_entity import ClientEntity, entity_at
from penstock.metadata.features import Features
from penstock.metadata.image import Broker, ClusterImage, Configs, PartitionRegistration, Topic
from penstock.metadata.records import (
    NO_LEADER,
    ClusterId,
    ConfigOverrides,
    ElectedController,
    Feature,
    PartitionState,
    TopicAssignment,
    broker_id_of,
    decode,
    decode_epoch,
    decode_or_skip,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import ANY_VERSION, Check, MetadataStore, Node
from penstock.metadata.topic_names import is_legal
from penstock.types import NO_UUID, BrokerId, TopicPartition

logger = logging.getLogger(__name__)


async def catch_up(store: MetadataStore) -> None:
    """Make the next reads show all writes until now.

    A server of an ensemble may be behind others, but not once it has carried out a write of our
    own.
    """
    await store.multi((Check(paths.TOPICS, ANY_VERSION),))


async def read_image(store: MetadataStore) -> ClusterImage:
    brokers = await read_brokers(store)
    topics = await read_topics(store, await _children(store, paths.TOPICS), brokers)
    broker_configs = await read_configs(store, paths.CONFIG_BROKERS)
    single = await store.get_many(
        (paths.CLUSTER_ID, paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.FEATURE)
    )
    cluster_id, controller = single.get(paths.CLUSTER_ID), single.get(paths.CONTROLLER)
    epoch = single.get(paths.CONTROLLER_EPOCH)
    return ClusterImage(
        cluster_id=None if cluster_id is None else decode(ClusterId, cluster_id).id,
        controller=NO_LEADER
        if controller is None
        else decode(ElectedController, controller).broker,
        controller_epoch=0 if epoch is None else decode_epoch(epoch),
        brokers=brokers,
        topics=topics,
        topic_names={topic.id: name for name, topic in topics.items() if topic.id != NO_UUID},
        topic_configs=await read_configs(store, paths.CONFIG_TOPICS),
        default_broker_config=broker_configs.pop(paths.DEFAULT_ENTITY, {}),
        broker_configs={
            broker_id: given
            for name, given in broker_configs.items()
            if (broker_id := broker_id_of(name)) is not None
        },
        group_configs=await read_named_configs(store, paths.CONFIG_GROUPS),
        client_configs=await read_client_configs(store),
        client_metrics=await read_named_configs(store, paths.CONFIG_CLIENT_METRICS),
        deleting=frozenset(await _children(store, paths.DELETE_TOPICS)),
        features=features_of(single.get(paths.FEATURE)),
    )


async def read_brokers(store: MetadataStore) -> dict[BrokerId, Broker]:
    """The live brokers."""
    names = await _children(store, paths.BROKER_IDS)
    ids = [each for each in map(broker_id_of, names) if each is not None]
    nodes = await store.get_many(map(paths.broker, ids))
    found = {
        broker_id: broker_of(broker_id, nodes[paths.broker(broker_id)])
        for broker_id in ids
        if paths.broker(broker_id) in nodes
    }
    return {broker_id: broker for broker_id, broker in found.items() if broker is not None}


async def read_assignments(
    store: MetadataStore, names: Iterable[str]
) -> dict[str, TopicAssignment]:
    """The assignments of the named topics that exist and can be read."""
    found = await store.get_many(map(paths.topic, _legal(names)))
    return {
        path.rpartition("/")[2]: assignment
        for path, node in found.items()
        if (assignment := decode_or_skip(TopicAssignment, node)) is not None
    }


async def read_topics(
    store: MetadataStore, names: Iterable[str], live: Container[BrokerId]
) -> dict[str, Topic]:
    """The named topics that exist and can be read."""
    assigned = await read_assignments(store, names)
    states = await store.get_many(
        paths.partition_state(TopicPartition(name, index))
        for name, assignment in assigned.items()
        for index in assignment.partitions
    )
    return {
        name: Topic(
            name,
            assignment.id(),
            {
                index: partition_of(
                    assignment,
                    index,
                    states.get(paths.partition_state(TopicPartition(name, index))),
                    live,
                )
                for index in sorted(assignment.partitions)
            },
        )
        for name, assignment in assigned.items()
    }


def _legal(names: Iterable[str]) -> Iterator[str]:
    """The names that topics can have; other nodes are skipped.

    A log of any other name may fail to be created, and take its directory offline.
    """
    for name in names:
        if is_legal(name):
            yield name
        else:
            logger.warning(
                "%s: no topic can have this name; the node is skipped: delete it", paths.topic(name)
            )


async def read_configs(store: MetadataStore, parent: str) -> dict[str, Configs]:
    """The settings under `/config/<type>`, by the name in the path."""
    listed = [f"{parent}/{name}" for name in await _children(store, parent)]
    return {
        path.rpartition("/")[2]: overrides.config
        for path, node in (await store.get_many(listed)).items()
        if node.data is not None
        and (overrides := decode_or_skip(ConfigOverrides, node)) is not None
    }


async def read_named_configs(store: MetadataStore, parent: str) -> dict[str, Configs]:
    """The settings by the name of a group or subscription, which is escaped in the path."""
    found = await read_configs(store, parent)
    return {paths.entity_of(name) or name: given for name, given in found.items()}


async def read_current_configs(store: MetadataStore, listed: Iterable[str]) -> dict[str, Configs]:
    """The settings by path, as all answered changes until now left them; none without a node."""
    await catch_up(store)
    found: dict[str, Configs] = {path: {} for path in listed}
    for path, node in (await store.get_many(found)).items():
        if node.data is not None:
            overrides = decode_or_skip(ConfigOverrides, node)
            found[path] = {} if overrides is None else overrides.config
    return found


async def read_group_config(store: MetadataStore, group: str) -> Configs:
    path = paths.group_config(group)
    return (await read_current_configs(store, (path,)))[path]


async def read_client_configs(store: MetadataStore) -> dict[ClientEntity, Configs]:
    """The settings of users, of client ids, of both together, and of addresses."""
    users = [f"{paths.CONFIG_USERS}/{name}" for name in await _children(store, paths.CONFIG_USERS)]
    parents = (paths.CONFIG_CLIENTS, paths.CONFIG_IPS, *(f"{user}/clients" for user in users))
    children = await store.children_many(parents)
    listed = [f"{parent}/{name}" for parent, names in children.items() for name in names]
    return {
        entity_at(path): overrides.config
        for path, node in (await store.get_many((*users, *listed))).items()
        if node.data is not None  # only a parent, such as a user with quotas per client
        and (overrides := decode_or_skip(ConfigOverrides, node)) is not None
    }


def broker_of(broker_id: BrokerId, node: Node) -> Broker | None:
    """The broker registered by this node."""
    registration = decode_or_skip(BrokerRegistration, node)
    if registration is None:
        return None
    return Broker(
        broker_id,
        node.created_zxid,
        registration.addresses(),
        registration.rack_name(),
        unclean_shutdown=registration.unclean_shutdown is True,
        log_dirs=registration.log_dirs or (),
        cordoned_log_dirs=registration.cordoned_log_dirs or (),
    )


def partition_of(
    assignment: TopicAssignment, index: int, state: Node | None, live: Container[BrokerId]
) -> PartitionRegistration:
    """A partition with its state, if there is one.

    A replica counts as offline if its broker is. Failed log directories are not in the store.
    """
    replicas = assignment.partitions[index]
    partition = PartitionRegistration(
        replicas,
        offline_replicas=tuple(each for each in replicas if each not in live),
        adding_replicas=assignment.adding_replicas.get(index, ()),
        removing_replicas=assignment.removing_replicas.get(index, ()),
    )
    return partition if state is None else state_of(partition, state) or partition


def state_of(partition: PartitionRegistration, state: Node) -> PartitionRegistration | None:
    """The partition with the state in this node; None if the node cannot be read."""
    known = decode_or_skip(PartitionState, state)
    if known is None:
        return None
    return replace(
        partition,
        isr=known.isr,
        leader=known.leader,
        leader_epoch=known.leader_epoch,
        partition_epoch=state.version,
        controller_epoch=known.controller_epoch,
        recovering=known.recovering(),
    )


def features_of(node: Node | None) -> Features:
    return Features() if node is None else Features(decode(Feature, node).levels(), node.version)


async def _children(store: MetadataStore, path: str) -> list[str]:
    """Empty if the parent does not exist yet."""
    return (await store.children_many((path,))).get(path, [])
