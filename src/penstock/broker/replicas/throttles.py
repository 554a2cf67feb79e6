"""Replication throttles of this broker, as a leader and as a follower."""

from collections.abc import Callable

from penstock.broker.cluster import Cluster
from penstock.replication.partition import Partition
from penstock.replication.throttle import Throttle, is_listed
from penstock.types import BrokerId


class _Throttled:
    def __init__(
        self, broker_id: BrokerId, cluster: Cluster, monotonic_ms: Callable[[], int]
    ) -> None:
        self._broker_id, self._cluster = broker_id, cluster
        self._throttle = Throttle(monotonic_ms)


class LeaderThrottle(_Throttled):
    """Limits what throttled followers read from this leader. Belongs to the event loop."""

    @property
    def _rate(self) -> int:
        return self._cluster.config.replication.leader_replication_throttled_rate

    def concerns(self, partition: Partition, replica: int) -> bool:
        """Whether the throttle applies: the follower is out of sync, and this leader is listed."""
        listed = partition.log.config.leader_replication_throttled_replicas
        return (
            bool(listed)
            and replica not in partition.isr
            and is_listed(listed, partition.topic_partition.partition, self._broker_id)
        )

    def delay_ms(self, most_ms: int) -> int:
        """How long to delay throttled followers."""
        return self._throttle.delay_ms(self._rate, most_ms)

    def record(self, size_bytes: int) -> None:
        self._throttle.record(size_bytes, self._rate)


class FollowerThrottle(_Throttled):
    """Limits what this follower reads from its leaders. Belongs to the event loop."""

    @property
    def _rate(self) -> int:
        return self._cluster.config.replication.follower_replication_throttled_rate

    def _concerns(self, partition: Partition) -> bool:
        listed = partition.log.config.follower_replication_throttled_replicas
        topic_partition = partition.topic_partition
        if not listed or not is_listed(listed, topic_partition.partition, self._broker_id):
            return False
        known = self._cluster.image.partition(topic_partition)
        return known is None or self._broker_id not in known.isr

    def delay_ms(self, partition: Partition, most_ms: int) -> int:
        return self._throttle.delay_ms(self._rate, most_ms) if self._concerns(partition) else 0

    def record(self, partition: Partition, size_bytes: int) -> None:
        if self._concerns(partition):
            self._throttle.record(size_bytes, self._rate)
