"""The coordinators, and the partitions of internal topics that this broker leads for them."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from penstock.broker.cluster import Cluster
from penstock.broker.coordination.assignors import assignors, task_assignors
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.config.group import GroupConfig
from penstock.config.share import ShareConfig
from penstock.config.streams import StreamsConfig
from penstock.config.transaction import TransactionConfig
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.records import GroupFormat, GroupShardRecord
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.share.coordinator import TOPIC as SHARE_GROUP_STATE
from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.share.records import ShareFormat, ShareRecord
from penstock.coordinator.share.shard import ShareShard
from penstock.coordinator.storage import CoordinatorLog
from penstock.coordinator.transaction.completion import MarkerWriter, TransactionCompletion
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.records import TransactionFormat, TransactionRecord
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.loop import Loop
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.replication.partition import Partition
from penstock.types import TopicPartition, Uuid

SETTLED_MS = 10_000
"""The controller has announced all partitions of a new topic by then."""


class Coordinator(Protocol):
    """A coordinator's runtime."""

    def lead(self, partition: int, log: CoordinatorLog) -> None: ...

    def resign(self, partition: int) -> None: ...


class Coordinators:
    """The coordinators by topic. A coordinator that keeps its leadership through a new epoch
    continues: its whole state is in its log.
    """

    def __init__(
        self,
        by_topic: Mapping[str, Coordinator],
        open_log: Callable[[Partition], CoordinatorLog],
        deleted: Callable[[Collection[TopicPartition]], object],
        counts: Collection[Callable[[], int]] = (),
    ) -> None:
        self._by_topic, self._open_log, self.deleted = by_topic, open_log, deleted
        self._counts = counts
        self._tenures: dict[TopicPartition, int] = {}

    def image_changed(self) -> None:
        """Update the partition counts: internal topics may have appeared. See `partition_count`."""
        for count in self._counts:
            count()

    def led(self, partition: Partition) -> None:
        topic_partition = partition.topic_partition
        coordinator = self._by_topic.get(topic_partition.topic)
        if coordinator is not None and self._tenures.get(topic_partition) != partition.tenure:
            self._tenures[topic_partition] = partition.tenure
            coordinator.lead(topic_partition.partition, self._open_log(partition))

    def not_led(self, topic_partition: TopicPartition) -> None:
        if self._tenures.pop(topic_partition, None) is not None:
            self._by_topic[topic_partition.topic].resign(topic_partition.partition)


def group_coordinator(
    config: GroupConfig,
    share: ShareConfig,
    streams: StreamsConfig,
    cluster: Cluster,
    loop: Loop,
    clock: Clock,
    waiters: Waiters,
) -> GroupCoordinator:
    offered = assignors(config.group_consumer_assignors)
    for_tasks = task_assignors(streams.group_streams_assignors)
    runtime: CoordinatorRuntime[GroupShard, GroupShardRecord] = CoordinatorRuntime(
        CONSUMER_OFFSETS,
        lambda pending: GroupShard(
            config,
            offered,
            lambda: cluster.image.topics,
            cluster.group_config,
            pending,
            share,
            cluster.share_group_config,
            streams,
            cluster.streams_group_config,
            for_tasks,
        ),
        GroupFormat(),
        loop=loop,
        clock=clock,
        on_reply=waiters.changed,
    )
    count = partition_count(cluster, CONSUMER_OFFSETS, config.offsets_topic_num_partitions, clock)
    return GroupCoordinator(runtime, count, offered, for_tasks)


def transaction_coordinator(
    config: TransactionConfig,
    cluster: Cluster,
    loop: Loop,
    clock: Clock,
    waiters: Waiters,
    markers: MarkerWriter,
) -> TransactionCoordinator:
    runtime: CoordinatorRuntime[TransactionShard, TransactionRecord] = CoordinatorRuntime(
        TRANSACTION_STATE,
        lambda _: TransactionShard(config),
        TransactionFormat(lambda: cluster.image.features.level(TRANSACTION_VERSION)),
        loop=loop,
        clock=clock,
        on_reply=waiters.changed,
    )
    completion = TransactionCompletion(runtime, markers, loop)
    runtime.on_change, runtime.on_resign = completion.on_change, completion.on_resign
    made_with = config.transaction_state_log_num_partitions
    count = partition_count(cluster, TRANSACTION_STATE, made_with, clock)
    return TransactionCoordinator(runtime, count)


def share_coordinator(
    config: ShareConfig, cluster: Cluster, loop: Loop, clock: Clock, waiters: Waiters
) -> ShareCoordinator:
    runtime: CoordinatorRuntime[ShareShard, ShareRecord] = CoordinatorRuntime(
        SHARE_GROUP_STATE,
        lambda _: ShareShard(config),
        ShareFormat(),
        loop=loop,
        clock=clock,
        on_reply=waiters.changed,
    )
    made_with = config.share_coordinator_state_topic_num_partitions
    count = partition_count(cluster, SHARE_GROUP_STATE, made_with, clock)
    return ShareCoordinator(runtime, count)


def partition_count(
    cluster: Cluster, name: str, configured: int, clock: Clock
) -> Callable[[], int]:
    """The number of partitions of an internal topic that keys are hashed over.

    It is fixed when this broker starts, or when the topic is created: if it grew with the topic,
    committed offsets and transactions would be looked up in other partitions. Kafka, too, uses the
    new count only after a restart.

    A topic created by hand may have any count, and the controller announces a large one in several
    requests: its count is fixed once it has not changed for `SETTLED_MS`.
    """
    known = cluster.image.topics.get(name)
    fixed = {} if known is None else {known.id: len(known.partitions)}
    seen: dict[Uuid, tuple[int, int]] = {}

    def count() -> int:
        topic = cluster.image.topics.get(name)
        if topic is None:
            return configured
        now = len(topic.partitions)
        if topic.id not in fixed:
            now_ms = clock.monotonic_ms()
            before, since_ms = seen.setdefault(topic.id, (now, now_ms))
            if now_ms - since_ms >= SETTLED_MS:
                fixed[topic.id] = before
            elif now == configured:
                fixed[topic.id] = now
            elif now != before:
                seen[topic.id] = (now, now_ms)
        return fixed.get(topic.id, now)

    return count
