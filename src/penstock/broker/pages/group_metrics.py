"""How far the groups are that this broker coordinates, under the names of kafka_exporter.

Ends of partitions that other brokers lead are some seconds old. Age is that of the batch which a
group reads next, and only that batch's header is read for it: it is told of partitions led here,
and where nothing is left to read.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.broker.context import Services
from penstock.clock import Clock
from penstock.http.prometheus import Metric, MetricKind, Sample
from penstock.log.append import OffsetOutOfRange
from penstock.metadata.records import NO_LEADER
from penstock.record.batch import HEADER_BYTES, read_header
from penstock.replication.partition import Partition
from penstock.types import BrokerId, TopicPartition


class Place(NamedTuple):
    """Where a group is in a partition; without the partition it is led elsewhere."""

    group: str
    where: TopicPartition
    offset: int
    partition: Partition | None
    end: int | None
    """Where the partition ends, as far as it is known."""

    @property
    def labels(self) -> dict[str, str]:
        topic, index = self.where
        return {"consumergroup": self.group, "topic": topic, "partition": str(index)}


def group_metrics(
    services: Services, clock: Clock, end_elsewhere: Callable[[TopicPartition], int | None]
) -> dict[str, Metric]:
    shards = services.coordination.groups.runtime.loaded_shards

    def places() -> Iterator[Place]:
        for shard in shards():
            for group, offsets in list(shard.offsets.items()):
                for where, committed in list(offsets.items()):
                    found = services.replicas.partitions.find(*where)
                    led = found if found is not None and found.leads else None
                    end = end_elsewhere(where) if led is None else led.log.high_watermark
                    yield Place(group, where, committed.offset, led, end)

    def each(read: Callable[[Place], float | None]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for place in places():
                value = read(place)
                if value is not None:
                    yield Sample(value, place.labels)

        return samples

    def sums(read: Callable[[Place], float | None]) -> Callable[[], Iterator[Sample]]:
        """Per group and topic, as dashboards want it."""

        def samples() -> Iterator[Sample]:
            found: dict[tuple[str, str], float] = {}
            for place in places():
                value = read(place)
                if value is not None:
                    key = (place.group, place.where.topic)
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
            MetricKind.GAUGE, "The committed offset.", each(lambda place: place.offset)
        ),
        f"{prefix}_current_offset_sum": Metric(
            MetricKind.GAUGE,
            "The committed offsets of a topic, added up.",
            sums(lambda place: place.offset),
        ),
        f"{prefix}_lag": Metric(MetricKind.GAUGE, "Records not read yet.", each(lag)),
        f"{prefix}_lag_sum": Metric(
            MetricKind.GAUGE, "Records of a topic not read yet.", sums(lag)
        ),
        f"{prefix}_lag_seconds": Metric(
            MetricKind.GAUGE,
            "Age of the oldest record not read yet.",
            each(lambda place: lag_seconds(place, clock.now_ms())),
        ),
    }


def lag(place: Place) -> int | None:
    return None if place.end is None else max(place.end - place.offset, 0)


def lag_seconds(place: Place, now_ms: int) -> float | None:
    behind = lag(place)
    if not behind:
        return behind
    if place.partition is None:
        return None
    log = place.partition.log
    try:
        found = log.read(max(place.offset, log.log_start_offset), 1, up_to=log.high_watermark)
    except OffsetOutOfRange:
        return None
    if found is None:
        return 0
    header = read_header(found.file.read(found.position, HEADER_BYTES))
    return max(now_ms - header.base_timestamp, 0) / 1000


def places_elsewhere(services: Services) -> dict[BrokerId, set[TopicPartition]]:
    """The partitions that groups of this broker read and other brokers lead, by their leaders."""
    found: dict[BrokerId, set[TopicPartition]] = {}
    for shard in services.coordination.groups.runtime.loaded_shards():
        for offsets in list(shard.offsets.values()):
            for where in list(offsets):
                known = services.cluster.image.partition(where)
                if known is not None and known.leader not in {NO_LEADER, services.broker_id}:
                    found.setdefault(known.leader, set()).add(where)
    return found
