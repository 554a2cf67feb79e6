"""Offsets and lag of the groups that this broker coordinates.

The names are those of kafka_exporter and kafka-lag-exporter (`…_group_lag_seconds`), and
`consumer_lag`. Lag in seconds is the age of the batch that a group reads next, from its header. For
a partition that another broker leads, it is the time since this broker saw the partition's end pass
the group's offset; the known high watermark is some seconds old.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.broker.context import Services
from penstock.broker.pages.shared import Shared
from penstock.broker.peers.end_history import EndHistory
from penstock.clock import Clock
from penstock.http.prometheus import Metric, Sample, gauge, labels
from penstock.log.lookup import OffsetOutOfRange
from penstock.log.partition_log import PartitionLog
from penstock.metadata.records import NO_LEADER
from penstock.record.batch import HEADER_BYTES, read_header
from penstock.types import BrokerId, TopicPartition

Elsewhere = Callable[[TopicPartition], EndHistory | None]
"""The observed ends of a partition that another broker leads; None before the first."""


class CommittedLag(NamedTuple):
    """A group's committed offset in a partition; `lag` is None while the end is unknown."""

    group: str
    topic: str
    offset: int
    lag: int | None
    lag_seconds: float | None
    exporter_labels: str
    labels: str


def group_metrics(services: Services, clock: Clock, elsewhere: Elsewhere) -> dict[str, Metric]:
    shards = services.coordination.groups.runtime.loaded_shards
    offsets = Shared(group_offsets(services, clock.now_ms(), elsewhere))

    def each(
        read: Callable[[CommittedLag], float | None], *, exporter: bool = True
    ) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for at in offsets:
                value = read(at)
                if value is not None:
                    yield Sample(value, at.exporter_labels if exporter else at.labels)

        return samples

    def sums(read: Callable[[CommittedLag], float | None]) -> Callable[[], Iterator[Sample]]:
        """Sums per group and topic, for dashboards."""

        def samples() -> Iterator[Sample]:
            found: dict[tuple[str, str], float] = {}
            for at in offsets:
                value = read(at)
                if value is not None:
                    key = (at.group, at.topic)
                    found[key] = found.get(key, 0) + value
            for (group, topic), total in found.items():
                yield Sample(total, labels(consumergroup=group, topic=topic))

        return samples

    def members() -> Iterator[Sample]:
        for shard in shards():
            sizes = {group.id: len(group.members) for group in shard.classic_groups.values()}
            sizes |= {group.id: len(group.members) for group in shard.consumer_groups.values()}
            sizes |= {group.id: len(group.members) for group in shard.streams_groups.values()}
            for name, size in sizes.items():
                yield Sample(size, labels(consumergroup=name))

    records, seconds = "Records not read yet.", "Age of the oldest record not read yet."
    prefix = "kafka_consumergroup"
    return {
        f"{prefix}_members": gauge("Members of a group.", members),
        f"{prefix}_current_offset": gauge("The committed offset.", each(lambda at: at.offset)),
        f"{prefix}_current_offset_sum": gauge(
            "The committed offsets of a topic, added up.", sums(lambda at: at.offset)
        ),
        f"{prefix}_lag": gauge(records, each(lambda at: at.lag)),
        f"{prefix}_lag_sum": gauge("Records of a topic not read yet.", sums(lambda at: at.lag)),
        f"{prefix}_lag_seconds": gauge(seconds, each(lambda at: at.lag_seconds)),
        f"{prefix}_group_lag_seconds": gauge(
            seconds, each(lambda at: at.lag_seconds, exporter=False)
        ),
        "consumer_lag": gauge(records, each(lambda at: at.lag, exporter=False)),
        "consumer_lag_seconds": gauge(seconds, each(lambda at: at.lag_seconds, exporter=False)),
    }


def group_offsets(services: Services, now_ms: int, elsewhere: Elsewhere) -> Iterator[CommittedLag]:
    for shard in services.coordination.groups.runtime.loaded_shards():
        for group, offsets in list(shard.offsets.items()):
            for (topic, index), committed in list(offsets.items()):
                found = services.replicas.partitions.find(topic, index)
                lag, since_ms = (
                    lag_here(found.log, committed.offset, now_ms)
                    if found is not None and found.leads
                    else lag_elsewhere(
                        elsewhere(TopicPartition(topic, index)), committed.offset, now_ms
                    )
                )
                yield CommittedLag(
                    group,
                    topic,
                    committed.offset,
                    lag,
                    None if since_ms is None else max(now_ms - since_ms, 0) / 1000,
                    labels(consumergroup=group, topic=topic, partition=str(index)),
                    labels(group=group, topic=topic, partition=str(index)),
                )


def lag_here(log: PartitionLog, offset: int, now_ms: int) -> tuple[int | None, int | None]:
    """The lag, and the time of the first unread record."""
    lag = max(log.high_watermark - offset, 0)
    return lag, next_batch_ms(log, offset) if lag else now_ms


def next_batch_ms(log: PartitionLog, offset: int) -> int | None:
    """The timestamp of the batch at this offset."""
    try:
        found = log.read(max(offset, log.log_start_offset), 1, up_to=log.high_watermark)
    except OffsetOutOfRange:
        return None
    if found is None:
        return None
    header = read_header(found.file.read(found.position, HEADER_BYTES))
    return header.max_timestamp if header.is_log_append_time else header.base_timestamp


def lag_elsewhere(
    ends: EndHistory | None, offset: int, now_ms: int
) -> tuple[int | None, int | None]:
    if ends is None:
        return None, None
    lag = max(ends.last - offset, 0)
    return lag, ends.passed_ms(offset) if lag else now_ms


def partitions_elsewhere(services: Services) -> dict[BrokerId, set[TopicPartition]]:
    """The partitions that this broker's groups read and other brokers lead, by leader."""
    found: dict[BrokerId, set[TopicPartition]] = {}
    for shard in services.coordination.groups.runtime.loaded_shards():
        for offsets in list(shard.offsets.values()):
            for topic_partition in list(offsets):
                known = services.cluster.image.partition(topic_partition)
                if known is not None and known.leader not in {NO_LEADER, services.broker_id}:
                    found.setdefault(known.leader, set()).add(topic_partition)
    return found
