"""The partitions that this broker holds."""

from collections.abc import Iterator

from penstock.errors import ErrorCode, KafkaError
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore, PartitionOffline
from penstock.replication.environment import ALONE, Environment
from penstock.replication.partition import Partition
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid, uuid_text


class UnknownPartition(KafkaError):
    """No such topic or partition is known here."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Partitions:
    """Creates, finds and drops partitions. Belongs to the event loop."""

    def __init__(
        self, broker_id: BrokerId, store: LogStore, environment: Environment = ALONE
    ) -> None:
        self._broker_id, self.store, self._environment = broker_id, store, environment
        self.isr_counts = environment.isr_counts
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

    def create(
        self, topic: str, index: int, topic_id: Uuid, now_ms: int, *, is_new: bool = True
    ) -> Partition:
        """The partition with its log, which is made unless it was there at start-up.

        One that is not new may have its log in a directory that is offline: an empty one beside
        it would pass for the whole partition. A log of another topic that had the same name is
        set aside, and its partition with it.
        """
        key = TopicPartition(topic, index)
        why = self._why_stray(key, topic_id, is_new=is_new)
        if why is not None:
            self.set_aside(key, why)
        found = self._partitions.get(key)
        if found is None:
            log = self._log(key, topic_id, now_ms, is_new=is_new)
            found = self._partitions[key] = Partition(
                self._broker_id, key, topic_id, log, self._environment
            )
        return found

    def _why_stray(self, key: TopicPartition, topic_id: Uuid, *, is_new: bool) -> str | None:
        """What tells that the log of this name is another topic's; None: it is this one's."""
        if key not in self.store.logs and key not in self.store.future_logs:
            return None
        known = self.store.topic_ids.get(key)
        if known is None:
            is_old = is_new and key not in self._partitions
            return "was there before its topic was made" if is_old else None
        if NO_UUID in {known, topic_id} or known == topic_id:
            return None
        return f"has the topic id {uuid_text(known)}, and its topic is {uuid_text(topic_id)} now"

    def _log(
        self, key: TopicPartition, topic_id: Uuid, now_ms: int, *, is_new: bool
    ) -> PartitionLog:
        log = self.store.get(key)
        if log is None:
            if not is_new and len(self.store.online) < len(self.store.dirs):
                raise PartitionOffline(f"{key} may be in a directory that is offline")
            return self.store.create(key, topic_id, now_ms)
        if key not in self.store.topic_ids:
            self.store.name_topic(log, topic_id)
        return log

    def set_aside(self, key: TopicPartition, why: str) -> None:
        """Forget a partition that this broker may not serve, and keep its log as a stray."""
        self._retire(key)
        self.store.set_aside(key, why)

    def _retire(self, key: TopicPartition) -> None:
        found = self._partitions.pop(key, None)
        if found is not None:
            found.retire()

    def drop(self, topic: str, index: int, *, sync: bool = True) -> None:
        """Forget a partition and delete its log, the copy in another directory first: alone it
        would be taken for the log at the next start. `sync`: see `LogStore.delete`.
        """
        key = TopicPartition(topic, index)
        self._retire(key)
        if key in self.store.future_logs:
            self.store.delete(key, future=True)
        if key in self.store.logs:
            self.store.delete(key, sync=sync)
