"""A controller in office: its term, the image that it keeps, and those who hear of changes."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from msgspec import Struct

from penstock.controller.change import Brokers, PartitionChange, StateChange, StoppedReplicas
from penstock.controller.term import NotController, Term
from penstock.metadata.image import ClusterImage, ImageDelta, Partition, Topic
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId, TopicPartition


class Deletion(NamedTuple):
    """A topic whose logs go; its nodes stay until all of them are gone."""

    topic: Topic
    awaited: set[tuple[BrokerId, TopicPartition]]
    """Replicas that have not said yet that their logs are gone."""


class ElectionCounts(Struct):
    """What a broker has decided as the controller, in all its terms since it started."""

    unclean: int = 0
    """Leaders that were made although others may have had more."""


class Office:
    """What the controller's parts share. Used by one operation at a time."""

    def __init__(
        self,
        store: MetadataStore,
        term: Term,
        image: ClusterImage,
        broker: BrokerId,
        brokers: Brokers,
        counts: ElectionCounts,
    ) -> None:
        self.store, self.term, self.image = store, term, image
        self.broker, self._brokers, self.counts = broker, brokers, counts
        self.leaving: dict[BrokerId, int] = {}
        """Brokers that are about to stop, with their epochs: they are given nothing to lead."""
        self.failed: set[tuple[BrokerId, TopicPartition]] = set()
        """Replicas whose log directory has failed."""
        self.deletions: dict[str, Deletion] = {}
        """Topics that are being deleted, by name."""
        self.may_delete_topics = True
        """`delete.topic.enable`."""
        self.outrun: set[TopicPartition] = set()
        """Partitions whose state somebody else has written: brokers hear of them anew."""
        self.repair_soon: Callable[[], object] = lambda: None
        """Have partitions repaired after this operation."""
        self.is_over = False
        """Whether the office was given up; an operation may still be under way."""

    def live(self, where: TopicPartition, replicas: Iterable[BrokerId]) -> Collection[BrokerId]:
        """Those that have their log, on a broker that stays."""
        return [each for each in self.present(where, replicas) if each not in self.leaving]

    def present(self, where: TopicPartition, replicas: Iterable[BrokerId]) -> Collection[BrokerId]:
        """Those that have their log, on a broker that is there, even if it is about to stop."""
        return [
            each
            for each in replicas
            if each in self.image.brokers and (each, where) not in self.failed
        ]

    @property
    def doubtful(self) -> Collection[BrokerId]:
        """Brokers that may have lost what they had acknowledged."""
        return [each.id for each in self.image.brokers.values() if each.page_cache_lost]

    def offline(self, where: TopicPartition, partition: Partition) -> tuple[BrokerId, ...]:
        """Those that clients cannot read from; one on a broker that is leaving still can be."""
        return tuple(
            each
            for each in partition.replicas
            if each not in self.image.brokers or (each, where) in self.failed
        )

    async def announce(
        self,
        delta: ImageDelta,
        *,
        partitions: Iterable[PartitionChange] = (),
        told: Iterable[TopicPartition] = (),
        stopped: Iterable[StoppedReplicas] = (),
        joined: Iterable[BrokerId] = (),
        topic_configs: Iterable[str] = (),
        broker_configs: bool = False,
    ) -> Collection[TopicPartition]:
        """Take what was written into the image, and let the brokers carry it out; see `Brokers`."""
        if self.is_over:
            raise NotController(f"the office of epoch {self.term.epoch} was given up")
        self.image = self.image.apply(delta)
        change = StateChange(
            image=self.image,
            partitions=tuple(partitions),
            told=tuple(told),
            stopped=tuple(stopped),
            joined=frozenset(joined),
            topic_configs=tuple(topic_configs),
            broker_configs=broker_configs,
        )
        return await self._brokers.apply(change)
