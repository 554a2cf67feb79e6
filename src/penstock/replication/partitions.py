"""The partitions that have a replica on this broker."""

from collections.abc import Iterator

from penstock.log.store import LogStore
from penstock.replication.environment import ALONE, Environment
from penstock.replication.errors import UnknownPartition
from penstock.replication.partition import Partition
from penstock.replication.partition_logs import log_of, why_stray
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid


class Partitions:
    """Creates, finds and drops partitions. Belongs to the event loop."""

    def __init__(
        self, broker_id: BrokerId, store: LogStore, environment: Environment = ALONE
    ) -> None:
        self._broker_id, self.store, self._environment = broker_id, store, environment
        self.isr_counts = environment.isr_counts
        self.here: dict[tuple[str, int], Partition] = {}
        """By topic and index; only this class changes it."""
        self.failed_produces = self.failed_fetches = 0
        """Batches and reads that were refused, of unknown partitions too."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.here.values())

    def __len__(self) -> int:
        return len(self.here)

    def find(self, topic: str, index: int) -> Partition | None:
        return self.here.get((topic, index))

    def get(self, topic: str, index: int) -> Partition:
        """The partition, whether led here or not; raises if it is not on this broker."""
        found = self.here.get((topic, index))
        if found is None:
            raise UnknownPartition(f"{topic}-{index} is not on this broker")
        return found

    def create(
        self, topic: str, index: int, topic_id: Uuid, now_ms: int, *, is_new: bool = True
    ) -> Partition:
        """The partition with its log, which is created unless it was loaded at start.

        If the partition is not new, its log may be in an offline directory: an empty log in
        another one would pass for the whole partition. A log of a deleted topic with the same
        name is set aside, and its partition with it.
        """
        topic_partition = TopicPartition(topic, index)
        is_unknown = is_new and topic_partition not in self.here
        why = why_stray(self.store, topic_partition, topic_id, is_new=is_unknown)
        if why is not None:
            self.set_aside(topic_partition, why)
        found = self.here.get(topic_partition)
        if found is None:
            log = log_of(self.store, topic_partition, topic_id, now_ms, is_new=is_new)
            log.config = self.store.config_for(topic)  # altered since a thread began to create it
            found = self.here[topic_partition] = Partition(
                self._broker_id, topic_partition, topic_id, log, self._environment
            )
        elif found.topic_id == NO_UUID:
            found.topic_id = topic_id  # the controller has given the topic its id since
        return found

    def set_aside(self, topic_partition: TopicPartition, why: str) -> None:
        """Drop a partition that this broker may not serve, but keep its log as a stray."""
        self._retire(topic_partition)
        self.store.set_aside(topic_partition, why)

    def _retire(self, topic_partition: TopicPartition) -> None:
        found = self.here.pop(topic_partition, None)
        if found is not None:
            found.retire()

    def drop(self, topic: str, index: int, *, sync: bool = True) -> None:
        """Drop a partition and delete its log. A copy in another directory goes first: left alone,
        it would be taken for the log at the next start. `sync`: see `LogStore.delete`.
        """
        topic_partition = TopicPartition(topic, index)
        self._retire(topic_partition)
        if topic_partition in self.store.future_logs:
            self.store.delete(topic_partition, future=True)
        if topic_partition in self.store.logs:
            self.store.delete(topic_partition, sync=sync)
