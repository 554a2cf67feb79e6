"""The state of the active controller: its epoch, its image of the cluster, and work in progress."""

from collections.abc import Callable, Collection, Iterable, Iterator
from random import Random, SystemRandom
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from penstock.controller.epoch import ControllerEpoch, NotController
from penstock.controller.state_change import (
    Brokers,
    PartitionChange,
    StateChange,
    StoppedReplicas,
)
from penstock.metadata.image import ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId, TopicPartition


class TopicDeletion(NamedTuple):
    """A topic being deleted. Its nodes stay until every replica's log is gone."""

    topic: Topic
    awaited: set[tuple[BrokerId, TopicPartition]]
    """Replicas whose brokers have not confirmed the deletion of the log yet."""


class ElectionCounts(Struct):
    """Elections that this broker held as the controller since it started, in all its epochs."""

    elected: int = 0
    unclean: int = 0
    """Leaders elected although another replica may have had more records."""


class ControllerContext:
    """State shared by the controller's parts. One operation at a time uses it."""

    def __init__(
        self,
        store: MetadataStore,
        epoch: ControllerEpoch,
        image: ClusterImage,
        broker: BrokerId,
        brokers: Brokers,
        counts: ElectionCounts,
    ) -> None:
        self.store, self.epoch, self.image = store, epoch, image
        self.broker, self._brokers, self.counts = broker, brokers, counts
        self.shutting_down: dict[BrokerId, int] = {}
        """Brokers in a controlled shutdown, with their epochs. They are not elected."""
        self.replicas_on_offline_dirs: set[tuple[BrokerId, TopicPartition]] = set()
        """Replicas without a usable log: their directory has failed, or files could not be opened.
        """
        self.caught_up: set[tuple[BrokerId, TopicPartition]] = set()
        """Replicas that have joined the ISR since their broker came back after an unclean shutdown.
        """
        self.deletions: dict[str, TopicDeletion] = {}
        """Topics being deleted, by name."""
        self.undeleted: set[tuple[BrokerId, TopicPartition]] = set()
        """Replicas of deleted topics whose brokers could not delete the log."""
        self.begun_request_zxid: int | None = None
        """The version of a tool's request for reassignments that was begun and is not complete."""
        self.may_delete_topics = True
        """`delete.topic.enable`."""
        self.chance: Random = SystemRandom()
        """Makes the ids of topics that have none."""
        self.changed_elsewhere: set[TopicPartition] = set()
        """Partitions whose state node another writer changed, or the store refuses to change: there
        the image may have another leader or ISR than the store. The next repair gives each of them
        a new leader epoch, because brokers ignore an epoch that they know.
        """
        self.dropped: dict[TopicPartition, StoppedReplicas] = {}
        """Replicas that are no longer assigned, but whose partition's state could not be written
        yet. They stop once it is written.
        """
        self.repair_soon: Callable[[], object] = lambda: None
        """Schedules a repair of all partitions after the current operation."""
        self.repair_topic_soon: Callable[[str], object] = lambda _: None
        """Schedules a repair of one topic's partitions."""
        self.repair_later: Callable[[], object] = lambda: None
        """Schedules a repair after a pause: at once it would fail in the same way."""
        self.is_resigned = False
        """Set on resignation, while an operation may still be running."""

    def live_replicas(
        self, topic_partition: TopicPartition, replicas: Iterable[BrokerId]
    ) -> Collection[BrokerId]:
        """The replicas with a working log, on a live broker that is not shutting down."""
        return [
            each
            for each in self.live_or_shutting_down_replicas(topic_partition, replicas)
            if each not in self.shutting_down
        ]

    def live_or_shutting_down_replicas(
        self, topic_partition: TopicPartition, replicas: Iterable[BrokerId]
    ) -> Collection[BrokerId]:
        """The replicas with a working log, on a live broker."""
        return [each for each in replicas if not self._is_offline(each, topic_partition)]

    def offline_replicas(
        self, topic_partition: TopicPartition, partition: PartitionRegistration
    ) -> tuple[BrokerId, ...]:
        """The replicas that clients cannot read from. A broker in a shutdown still serves."""
        return tuple(each for each in partition.replicas if self._is_offline(each, topic_partition))

    def _is_offline(self, broker: BrokerId, topic_partition: TopicPartition) -> bool:
        return (
            broker not in self.image.brokers
            or (broker, topic_partition) in self.replicas_on_offline_dirs
        )

    def _forget_gone(self) -> None:
        """Forget the failures of replicas that are gone, and foreign changes to deleted partitions.

        A replica that was moved away, or whose topic is gone, may come back to a working log. A
        topic that is created again begins with a state of its own.
        """
        self.replicas_on_offline_dirs = {
            (broker, topic_partition)
            for broker, topic_partition in self.replicas_on_offline_dirs
            if (known := self.image.partition(topic_partition)) is not None
            and broker in known.replicas
        }
        self.changed_elsewhere = {
            each for each in self.changed_elsewhere if self.image.partition(each) is not None
        }

    @property
    def unclean_shutdown_brokers(self) -> Collection[BrokerId]:
        """Brokers that may have lost records that they had acknowledged."""
        return [each.id for each in self.image.brokers.values() if each.unclean_shutdown]

    def unclean_replicas(self, topic_partition: TopicPartition) -> Collection[BrokerId]:
        """Brokers that may have lost records of this partition, and have not caught up since."""
        return [
            each
            for each in self.unclean_shutdown_brokers
            if (each, topic_partition) not in self.caught_up
        ]

    async def announce(
        self,
        delta: ImageDelta,
        *,
        partitions: Iterable[PartitionChange] = (),
        metadata_only: Iterable[TopicPartition] = (),
        stopped: Iterable[StoppedReplicas] = (),
        joined: Iterable[BrokerId] = (),
        topic_configs: Iterable[str] = (),
        broker_configs: bool = False,
    ) -> Collection[TopicPartition]:
        """Apply what was written to the image, and send it to the brokers; see `Brokers.apply`."""
        if self.is_resigned:
            raise NotController(f"the controller of epoch {self.epoch.number} has resigned")
        self.image = self.image.apply(delta)
        self._forget_gone()
        changes = tuple(partitions)
        change = StateChange(
            image=self.image,
            partitions=changes,
            metadata_only=tuple(metadata_only),
            stopped=(*stopped, *self._dropped_by(changes)),
            joined=frozenset(joined),
            topic_configs=tuple(topic_configs),
            broker_configs=broker_configs,
        )
        return await self._brokers.apply(change)

    def _dropped_by(self, changes: Iterable[PartitionChange]) -> Iterator[StoppedReplicas]:
        for each in changes:
            if each.topic_partition in self.changed_elsewhere:
                continue  # sent again as it was
            dropped = self.dropped.pop(each.topic_partition, None)
            if dropped is None or dropped.topic_id != each.topic_id:
                continue
            gone = tuple(broker for broker in dropped.replicas if broker not in each.state.replicas)
            if gone:
                yield replace(dropped, replicas=gone, leader_epoch=each.state.leader_epoch)
