"""Plans of new topics and of more partitions. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from msgspec import Struct

from penstock.config.controller import ControllerConfig
from penstock.config.effective import BrokerLayers, checked_topic_config
from penstock.config.kafka_message import kafka_message
from penstock.config.setting import settings
from penstock.config.topic import TopicConfig
from penstock.controller.cordoned import placeable
from penstock.controller.placement import (
    Assignment,
    InvalidReplicaAssignment,
    check_even,
    chosen,
    chosen_replicas,
    new_replication_factor,
    placed,
)
from penstock.controller.topic_rules import (
    MAX_NEW_PARTITIONS,
    InvalidPartitions,
    PolicyViolation,
    UnknownTopic,
    check_new_name,
    more_partitions,
    new_partitions,
)
from penstock.errors import ConfigError, ErrorCode, InvalidRequest, KafkaError
from penstock.metadata.image import Broker, ClusterImage, PartitionRegistration, Topic
from penstock.types import BrokerId, Uuid, random_uuid, uuid_text


class InvalidConfig(KafkaError):
    """An unknown setting, or a value that it does not accept."""

    code = ErrorCode.INVALID_CONFIG


class TopicSpec(Struct, frozen=True):
    """A requested topic; -1 requests the broker's default (KIP-464)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """A manual assignment: partitions with their replicas. The two numbers above are then -1."""
    configs: Mapping[str, str | None] = {}


class PlannedTopic(Struct, frozen=True):
    """A topic as it will be created. Its partitions have no leader until they are online."""

    topic: Topic
    configs: Mapping[str, str]


class MorePartitions(Struct, frozen=True):
    """A request for `count` partitions in all, optionally with the new partitions' replicas."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


def planned(
    new: TopicSpec,
    image: ClusterImage,
    config: ControllerConfig,
    layers: BrokerLayers,
    chance: Random,
) -> PlannedTopic:
    """The topic to create, checked in Kafka's order: name, settings, partitions and replicas."""
    check_new_name(new.name, (*image.topics, *image.deleting))
    configs = checked_configs(new.configs, layers)
    assignment = _assigned(new, image, config, chance)
    partitions = {index: PartitionRegistration(replicas) for index, replicas in assignment.items()}
    return PlannedTopic(Topic(new.name, new_topic_id(chance), partitions), configs)


def check_total(news: Iterable[TopicSpec], config: ControllerConfig) -> None:
    """Refuse a request for more than the controller can write in reasonable time."""
    total = sum(
        len(new.assignments)
        or (config.num_partitions if new.num_partitions == -1 else max(new.num_partitions, 0))
        for new in news
    )
    if total > MAX_NEW_PARTITIONS:
        raise PolicyViolation(
            f"{total} new partitions in one request, at most {MAX_NEW_PARTITIONS}"
        )


def checked_configs(configs: Mapping[str, str | None], layers: BrokerLayers) -> dict[str, str]:
    """The settings, if all are known and consistent with the brokers' defaults."""
    given = {name: value for name, value in configs.items() if value is not None}
    if len(given) < len(configs):
        empty = sorted(set(configs) - set(given))
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(empty)}")
    unknown = sorted(set(given) - set(settings(TopicConfig)))
    if unknown:
        raise InvalidConfig(f"Unknown topic config name: {unknown[0]}")
    try:
        checked_topic_config(given, layers)
    except ConfigError as error:
        raise InvalidConfig(kafka_message(error)) from error
    return given


def _assigned(
    new: TopicSpec, image: ClusterImage, config: ControllerConfig, chance: Random
) -> Assignment:
    if new.assignments:
        manual = "A manual partition assignment was specified, but"
        if new.replication_factor != -1:
            raise InvalidRequest(f"{manual} replication factor was not set to -1.")
        if new.num_partitions != -1:
            raise InvalidRequest(f"{manual} numPartitions was not set to -1.")
        return chosen(new.assignments, image.brokers)
    factor = new_replication_factor(new.replication_factor, config.default_replication_factor)
    partitions = new_partitions(new.num_partitions, config.num_partitions)
    brokers = placeable(image)
    size = max(len(brokers), 1)
    start, shift = chance.randrange(size), chance.randrange(size)
    return placed(
        _racks(brokers), partitions, factor, start=start, shift=shift, hosts=_hosts(brokers)
    )


def grown(more: MorePartitions, image: ClusterImage) -> dict[int, PartitionRegistration]:
    """The partitions to add. They continue around the ring from the topic's first partition."""
    topic = image.topics.get(more.name)
    if topic is None:
        raise UnknownTopic(f"topic {more.name} does not exist")
    if not topic.partitions:  # its node was written by hand
        raise InvalidPartitions(
            f"topic {more.name} has no partition, and so no replication factor for new ones: "
            "delete it and create it anew"
        )
    current = max(topic.partitions) + 1
    extra = more_partitions(more.name, current, more.count)
    if extra > MAX_NEW_PARTITIONS:
        raise PolicyViolation(
            f"{extra} new partitions in one request, at most {MAX_NEW_PARTITIONS}"
        )
    first = topic.partitions[min(topic.partitions)].replicas
    if more.assignments is None:
        brokers = placeable(image)
        ring = sorted(brokers)
        start = ring.index(first[0]) if first[0] in ring else 0
        assignment = placed(
            _racks(brokers),
            extra,
            len(first),
            start=start,
            shift=start,
            first_partition=current,
            hosts=_hosts(brokers),
        )
    else:
        assignment = _chosen_growth(more.assignments, extra, current, image)
        check_even((first, *assignment.values()))
    return {index: PartitionRegistration(replicas) for index, replicas in assignment.items()}


def _chosen_growth(
    assignments: Sequence[Sequence[int]], extra: int, current: int, image: ClusterImage
) -> Assignment:
    if len(assignments) != extra:
        raise InvalidReplicaAssignment(
            f"Attempted to add {extra} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified."
        )
    return {
        current + index: chosen_replicas(replicas, image.brokers)
        for index, replicas in enumerate(assignments)
    }


def _racks(brokers: Mapping[BrokerId, Broker]) -> dict[BrokerId, str | None]:
    return {broker.id: broker.rack for broker in brokers.values()}


def _hosts(brokers: Mapping[BrokerId, Broker]) -> dict[BrokerId, str]:
    """The host of each broker, by the first address that it advertises."""
    return {
        broker.id: broker.endpoints[0].host if broker.endpoints else f"{broker.id}"
        for broker in brokers.values()
    }


def new_topic_id(chance: Random) -> Uuid:
    """An id without a leading dash, which tools would take for an option."""
    while True:
        topic_id = Uuid(random_uuid(chance).bytes)
        if not uuid_text(topic_id).startswith("-"):
            return topic_id
