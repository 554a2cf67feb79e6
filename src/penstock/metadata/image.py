"""The image of the cluster that a broker answers from. Pure.

An image never changes in place: a delta makes a new image, which shares with the old one whatever
the delta does not touch. So objects serve as revisions: a response made from a `Topic` and from
`brokers` is valid as long as the image has these very objects. Compare them by `is`, and keep a
reference to them: an id alone may be reused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from msgspec import Struct

from penstock.config.listener import Endpoint
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.features import Features
from penstock.metadata.records import NO_LEADER
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition, Uuid

Configs = Mapping[str, str]

Key = TypeVar("Key")
Value = TypeVar("Value")

NO_EPOCH = LeaderEpoch(-1)


class Broker(Struct, frozen=True):
    """A live broker. Its epoch changes with each registration."""

    id: BrokerId
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    unclean_shutdown: bool = False
    """Its machine crashed, or logs were found damaged or missing: it may lack acknowledged records.
    A killed process alone does not count, since the page cache outlives it.
    """
    log_dirs: tuple[str, ...] = ()
    """Its directories as its settings name them; none if it is a Kafka broker."""
    cordoned_log_dirs: tuple[str, ...] = ()
    """Directories that get no new partitions, unless the setting was altered since it started."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """Its address on this listener, if it has one."""
        return next((each for each in self.endpoints if each.listener == listener), None)


class PartitionRegistration(Struct, frozen=True):
    """A partition as the controller last wrote it. Without a state node it has no leader."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...] = ()
    leader: BrokerId = NO_LEADER
    leader_epoch: LeaderEpoch = NO_EPOCH
    partition_epoch: int = -1
    """The version of its `state` node, which UpdateMetadata calls zkVersion."""
    controller_epoch: int = -1
    offline_replicas: tuple[BrokerId, ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()
    recovering: bool = False
    """The leader was elected uncleanly and has not reported its recovery yet."""


class Topic(Struct, frozen=True):
    """A topic with its partitions by index."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionRegistration]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelta:
    """Changes of an image. The value of each key is new, or None for a removal.

    `partitions` are applied to their topics, after `topics`. Those of unknown topics are ignored,
    because a topic may be deleted while changes of its partitions are in flight.
    """

    brokers: Mapping[BrokerId, Broker | None] = field(default_factory=dict)
    topics: Mapping[str, Topic | None] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionRegistration | None] = field(default_factory=dict)
    topic_configs: Mapping[str, Configs | None] = field(default_factory=dict)
    broker_configs: Mapping[BrokerId, Configs | None] = field(default_factory=dict)
    group_configs: Mapping[str, Configs | None] = field(default_factory=dict)
    client_configs: Mapping[ClientEntity, Configs | None] = field(default_factory=dict)
    client_metrics: Mapping[str, Configs | None] = field(default_factory=dict)
    # The fields below replace the whole value; None: unchanged.
    default_broker_config: Configs | None = None
    deleting: frozenset[str] | None = None
    controller: BrokerId | None = None
    """`NO_LEADER` while there is no controller."""
    controller_epoch: int | None = None
    features: Features | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """Everything that a broker knows of the cluster. Only `apply` makes a new image."""

    cluster_id: str | None = None
    controller: BrokerId = NO_LEADER
    controller_epoch: int = 0
    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topic_names: Mapping[Uuid, str] = field(default_factory=dict)
    topic_configs: Mapping[str, Configs] = field(default_factory=dict)
    broker_configs: Mapping[BrokerId, Configs] = field(default_factory=dict)
    group_configs: Mapping[str, Configs] = field(default_factory=dict)
    """Settings by group. The group may not exist: only its coordinator knows."""
    client_configs: Mapping[ClientEntity, Configs] = field(default_factory=dict)
    """Settings of users, client ids and addresses: quotas, and SCRAM credentials, which are secret.
    """
    client_metrics: Mapping[str, Configs] = field(default_factory=dict)
    """Subscriptions to metrics of clients, by name (KIP-714)."""
    default_broker_config: Configs = field(default_factory=dict)
    deleting: frozenset[str] = frozenset()
    features: Features = field(default_factory=Features)

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic_partition: TopicPartition) -> PartitionRegistration | None:
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    def without_deleted(self) -> "ClusterImage":
        """The image without topics that are being deleted: a starting broker does not get these."""
        gone = dict.fromkeys(self.deleting)
        return self.apply(ImageDelta(topics=gone, topic_configs=gone))

    def apply(self, delta: ImageDelta) -> "ClusterImage":
        topics = _changed(self.topics, delta.topics)
        topics = _changed(topics, _regrouped(topics, delta.partitions))
        return replace(
            self,
            brokers=_changed(self.brokers, delta.brokers),
            topics=topics,
            topic_names=_changed(self.topic_names, _renamed(self.topics, delta.topics)),
            topic_configs=_changed(self.topic_configs, delta.topic_configs),
            broker_configs=_changed(self.broker_configs, delta.broker_configs),
            group_configs=_changed(self.group_configs, delta.group_configs),
            client_configs=_changed(self.client_configs, delta.client_configs),
            client_metrics=_changed(self.client_metrics, delta.client_metrics),
            default_broker_config=_newer(delta.default_broker_config, self.default_broker_config),
            deleting=_newer(delta.deleting, self.deleting),
            controller=_newer(delta.controller, self.controller),
            controller_epoch=_newer(delta.controller_epoch, self.controller_epoch),
            features=_newer(delta.features, self.features),
        )


def _newer(new: Value | None, old: Value) -> Value:
    return old if new is None else new


def _changed(old: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> Mapping[Key, Value]:
    """The same mapping if nothing changes, else a copy (about 50 µs for 10,000 entries)."""
    if not changes:
        return old
    new = dict(old)
    for key, value in changes.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = value
    return new


def _regrouped(
    topics: Mapping[str, Topic], partitions: Mapping[TopicPartition, PartitionRegistration | None]
) -> dict[str, Topic]:
    """The topics changed by these partitions."""
    by_topic: dict[str, dict[int, PartitionRegistration | None]] = {}
    for (name, index), partition in partitions.items():
        if name in topics:
            by_topic.setdefault(name, {})[index] = partition
    return {
        name: Topic(name, topics[name].id, _changed(topics[name].partitions, changes))
        for name, changes in by_topic.items()
    }


def _renamed(
    old: Mapping[str, Topic], changes: Mapping[str, Topic | None]
) -> dict[Uuid, str | None]:
    """Changes of the names by id. A topic created again has the old name and a new id."""
    renamed: dict[Uuid, str | None] = {}
    for name, topic in changes.items():
        before = old[name].id if name in old else NO_UUID
        after = NO_UUID if topic is None else topic.id
        if before != after:
            renamed |= {before: None, after: name}
    renamed.pop(NO_UUID, None)  # topics from before topic ids
    return renamed
