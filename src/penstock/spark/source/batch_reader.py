"""A batch read: the driver determines the offset ranges once, and tasks read them."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.source.bounds import NOT_FOUND
from penstock.spark.source.data_loss import report
from penstock.spark.source.filters import Narrowing, pushed
from penstock.spark.source.lookup import earliest, latest, list_offsets, resolve, topics_of
from penstock.spark.source.ranges import OffsetRange, cut
from penstock.spark.source.settings import SourceSettings
from penstock.spark.source.subscription import subscribed
from penstock.types import TopicPartition, Uuid

if TYPE_CHECKING:
    import pyarrow as pa

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


class RangePartition(InputPartition):
    """One task's range."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)


def planned(ranges: Iterable[OffsetRange], settings: SourceSettings) -> list[InputPartition]:
    """The ranges as tasks, divided as the settings ask."""
    pieces = cut(
        ranges,
        at_least=settings.min_partitions,
        at_most_records=settings.max_records_per_partition,
    )
    return [RangePartition(each) for each in pieces]


def batch_reader(settings: SourceSettings) -> "BatchReader":
    """A reader that accepts filters, if Spark pushes them down.

    Spark fails a query whose reader accepts filters while `spark.sql.python.filterPushdown.enabled`
    is off. The worker that pushes filters is a module of its own: if it is loaded, they are on.
    """
    return FilteringReader(settings) if _PUSHING in sys.modules else BatchReader(settings)


class BatchReader(DataSourceReader):
    """Made in the driver's planner, and pickled for the tasks."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        settings = self._settings
        with BlockingClient(settings.client) as client:
            topics = topics_of(client, settings.subscription)
            partitions, missing = subscribed(settings.subscription, topics)
            if missing:
                missing_text = f"{', '.join(missing)} does not exist"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing_text)
            ids = {name: topic.id for name, topic in topics.items()}
            whole = self._ranges(client, partitions, ids)
            ranges = [self._narrowing.narrowed(each) for each in whole]
            ranges = self._from_times(client, [each for each in ranges if each.size > 0])
        return planned(ranges, settings)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        wanted = partition.value
        if wanted is None:  # Spark's empty read
            return iter(())
        from penstock.spark.source.read import read_range  # only tasks decode

        oldest, newest = self._narrowing.time_ms
        return read_range(wanted, self._settings, oldest_ms=oldest, newest_ms=newest)

    def _ranges(
        self, client: BlockingClient, partitions: list[TopicPartition], ids: Mapping[str, Uuid]
    ) -> list[OffsetRange]:
        settings = self._settings
        isolation = settings.fetch.isolation
        starts = resolve(client, settings.start, partitions, isolation).offsets
        ends = resolve(client, settings.end, partitions, isolation).offsets
        firsts, lasts = earliest(client, partitions), latest(client, partitions, isolation)
        fail = settings.fail_on_data_loss
        ranges = []
        for each in partitions:
            start, end = starts[each], ends[each]
            first, last = firsts[each], lasts[each]
            if start < first and start < end:
                report(f"{each} starts at offset {first}, not at {start}", fail=fail)
            if max(start, end) > last:
                report(f"{each} ends at offset {last}, not at {max(start, end)}", fail=fail)
            ranges.append(OffsetRange(each, max(start, first), min(end, last), ids[each.topic]))
        return ranges

    def _from_times(self, client: BlockingClient, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Move each start to the first record at or after a filter's earliest time.

        ListOffsets takes no negative time: brokers give such numbers other meanings. Records
        without a timestamp (-1) and those before 1970 are found by reading.
        """
        oldest = self._narrowing.time_ms[0]
        if oldest < 0 or not ranges:
            return ranges
        timestamps = {each.topic_partition: oldest for each in ranges}
        found = list_offsets(client, timestamps, self._settings.fetch.isolation)
        return [
            replace(each, start=max(each.start, found[each.topic_partition]))
            for each in ranges
            if found[each.topic_partition] != NOT_FOUND
        ]


class FilteringReader(BatchReader):
    """A reader that accepts Spark's filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._narrowing, left = pushed(filters)
        return left
