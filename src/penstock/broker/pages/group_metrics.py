"""Offsets and lag of the groups that this broker coordinates, under the names of kafka_exporter.

High watermarks of partitions that other brokers lead are some seconds old. `lag_seconds` is the age
of the batch that a group reads next, from its header; only for partitions that this broker leads,
or that have been read to the end.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.broker.context import Services
from penstock.clock import Clock
from penstock.http.prometheus import Metric, MetricKind, Sample
from penstock.log.lookup import OffsetOutOfRange
from penstock.metadata.records import NO_LEADER
from penstock.record.batch import HEADER_BYTES, read_header
from penstock.replication.partition import Partition
from penstock.types import BrokerId, TopicPartition


class GroupOffset(NamedTuple):
    """A group's committed offset in a partition."""

    group: str
    topic_partition: TopicPartition
    offset: int
    partition: Partition | None
    """None if another broker leads it."""
    end: int | None
    """The partition's high watermark; None while another broker has not reported it."""

    @property
    def labels(self) -> dict[str, str]:
        topic, index = self.topic_partition
        return {"consumergroup": self.group, "topic": topic, "partition": str(index)}


def group_metrics(
    services: Services, clock: Clock, end_elsewhere: Callable[[TopicPartition], int | None]
) -> dict[str, Metric]:
    shards = services.coordination.groups.runtime.loaded_shards

    def group_offsets() -> Iterator[GroupOffset]:
        for shard in shards():
            for group, offsets in list(shard.offsets.items()):
                for topic_partition, committed in list(offsets.items()):
                    found = services.replicas.partitions.find(*topic_partition)
                    led = found if found is not None and found.leads else None
                    end = end_elsewhere(topic_partition) if led is None else led.log.high_watermark
                    yield GroupOffset(group, topic_partition, committed.offset, led, end)

    def each(read: Callable[[GroupOffset], float | None]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for at in group_offsets():
                value = read(at)
                if value is not None:
                    yield Sample(value, at.labels)

        return samples

    def sums(read: Callable[[GroupOffset], float | None]) -> Callable[[], Iterator[Sample]]:
        """Sums per group and topic, for dashboards."""

        def samples() -> Iterator[Sample]:
            found: dict[tuple[str, str], float] = {}
            for at in group_offsets():
                value = read(at)
                if value is not None:
                    key = (at.group, at.topic_partition.topic)
                    found[key] = found.get(key, 0) + value
            for (group, topic), total in found.items():
                yield Sample(total, {"consumergroup": group, "topic": topic})

        return samples

    def members() -> Iterator[Sample]:
        for shard in shards():
            sizes = {group.id: len(group.members) for group in shard.classic_groups.values()}
            sizes |= {group.id: len(group.members) for group in shard.consumer_groups.values()}
            for name, size in sizes.items():
                yield Sample(size, {"consumergroup": name})

    prefix = "kafka_consumergroup"
    return {
        f"{prefix}_members": Metric(MetricKind.GAUGE, "Members of a group.", members),
        f"{prefix}_current_offset": Metric(
            MetricKind.GAUGE, "The committed offset.", each(lambda at: at.offset)
        ),
        f"{prefix}_current_offset_sum": Metric(
            MetricKind.GAUGE,
            "The committed offsets of a topic, added up.",
            sums(lambda at: at.offset),
        ),
        f"{prefix}_lag": Metric(MetricKind.GAUGE, "Records not read yet.", each(lag)),
        f"{prefix}_lag_sum": Metric(
            MetricKind.GAUGE, "Records of a topic not read yet.", sums(lag)
        ),
        f"{prefix}_lag_seconds": Metric(
            MetricKind.GAUGE,
            "Age of the oldest record not read yet.",
            each(lambda at: lag_seconds(at, clock.now_ms())),
        ),
    }


def lag(at: GroupOffset) -> int | None:
    return None if at.end is None else max(at.end - at.offset, 0)


def lag_seconds(at: GroupOffset, now_ms: int) -> float | None:
    behind = lag(at)
    if not behind:
        return behind
    if at.partition is None:
        return None
    log = at.partition.log
    try:
        found = log.read(max(at.offset, log.log_start_offset), 1, up_to=log.high_watermark)
    except OffsetOutOfRange:
        return None
    if found is None:
        return 0
    header = read_header(found.file.read(found.position, HEADER_BYTES))
    return max(now_ms - header.base_timestamp, 0) / 1000


def partitions_elsewhere(services: Services) -> dict[BrokerId, set[TopicPartition]]:
    """The partitions that groups of this broker read and other brokers lead, by their leaders."""
    found: dict[BrokerId, set[TopicPartition]] = {}
    for shard in services.coordination.groups.runtime.loaded_shards():
        for offsets in list(shard.offsets.values()):
            for topic_partition in list(offsets):
                known = services.cluster.image.partition(topic_partition)
                if known is not None and known.leader not in {NO_LEADER, services.broker_id}:
                    found.setdefault(known.leader, set()).add(topic_partition)
    return found
