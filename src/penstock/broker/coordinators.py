"""Which partitions of internal topics this broker leads, told to their coordinators."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from penstock.coordinator.storage import CoordinatorLog
from penstock.replication.partition import Partition
from penstock.types import TopicPartition


class Coordinator(Protocol):
    """A coordinator's runtime."""

    def lead(self, partition: int, log: CoordinatorLog) -> None: ...

    def resign(self, partition: int) -> None: ...


class Coordinators:
    """The coordinators by their topics. A new leader epoch means a new start."""

    def __init__(
        self,
        by_topic: Mapping[str, Coordinator],
        open_log: Callable[[Partition], CoordinatorLog],
        deleted: Callable[[Collection[TopicPartition]], object],
    ) -> None:
        self._by_topic, self._open_log, self.deleted = by_topic, open_log, deleted
        self._epochs: dict[TopicPartition, int] = {}

    def led(self, partition: Partition) -> None:
        where = partition.topic_partition
        coordinator = self._by_topic.get(where.topic)
        if coordinator is not None and self._epochs.get(where) != partition.leader_epoch:
            self._epochs[where] = partition.leader_epoch
            coordinator.lead(where.partition, self._open_log(partition))

    def not_led(self, where: TopicPartition) -> None:
        if self._epochs.pop(where, None) is not None:
            self._by_topic[where.topic].resign(where.partition)
