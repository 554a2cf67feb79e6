"""The partitions that this broker holds."""

import logging
from collections.abc import Iterator

from penstock.errors import ErrorCode, KafkaError
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
from penstock.replication.partition import Partition
from penstock.types import BrokerId, TopicPartition, Uuid

logger = logging.getLogger(__name__)


class UnknownPartition(KafkaError):
    """No such topic or partition is known here."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Partitions:
    """Creates, finds and drops partitions. Belongs to the event loop."""

    def __init__(self, broker_id: BrokerId, store: LogStore) -> None:
        self._broker_id, self.store = broker_id, store
        self._partitions: dict[tuple[str, int], Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def find(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def get(self, topic: str, index: int) -> Partition:
        """The partition, whoever leads it; refused if it is not on this broker."""
        found = self._partitions.get((topic, index))
        if found is None:
            raise UnknownPartition(f"{topic}-{index} is not on this broker")
        return found

    def create(self, topic: str, index: int, topic_id: Uuid, now_ms: int) -> Partition:
        """The partition with its log, which is new unless it was there at start-up."""
        key = TopicPartition(topic, index)
        found = self._partitions.get(key)
        if found is None:
            log = self._log(key, topic_id, now_ms)
            found = self._partitions[key] = Partition(self._broker_id, key, topic_id, log)
        return found

    def _log(self, key: TopicPartition, topic_id: Uuid, now_ms: int) -> PartitionLog:
        log, known = self.store.get(key), self.store.topic_ids.get(key)
        if log is not None and known not in {None, topic_id}:
            logger.warning("%s is of a topic that was deleted: its log goes", log.path)
            self.store.delete(key, now_ms)
            log = None
        if log is None:
            return self.store.create(key, topic_id, now_ms)
        if known is None:
            self.store.name_topic(log, topic_id)
        return log

    def drop(self, topic: str, index: int, now_ms: int) -> None:
        """Forget a partition and delete its log."""
        found = self._partitions.pop((topic, index), None)
        if found is not None:
            self.store.delete(found.topic_partition, now_ms)
