"""A batch read: ranges are settled once, in the driver, and read by tasks."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.source.bounds import NOT_FOUND
from penstock.spark.source.data_loss import report
from penstock.spark.source.filters import Narrowing, pushed
from penstock.spark.source.lookup import earliest, latest, list_offsets, partitions_of, resolve
from penstock.spark.source.ranges import OffsetRange, cut
from penstock.spark.source.settings import SourceSettings
from penstock.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


class RangePartition(InputPartition):
    """One task's range."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)


def planned(ranges: Iterable[OffsetRange], settings: SourceSettings) -> list[InputPartition]:
    """The ranges as tasks, as many and as large as the settings wish."""
    pieces = cut(
        ranges,
        at_least=settings.min_partitions,
        at_most_records=settings.max_records_per_partition,
    )
    return [RangePartition(each) for each in pieces]


def batch_reader(settings: SourceSettings) -> "BatchReader":
    """A reader that takes filters where Spark offers them.

    Spark fails a query whose reader takes filters while `spark.sql.python.filterPushdown.enabled`
    is off. Its worker that hands them over is a module of its own, so that tells.
    """
    return FilteringReader(settings) if _PUSHING in sys.modules else BatchReader(settings)


class BatchReader(DataSourceReader):
    """Made in the driver's planner, copied to the tasks."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        settings = self._settings
        with BlockingClient(settings.client) as client:
            places, missing = partitions_of(client, settings.subscription)
            if missing:
                there_is_no = f"{', '.join(missing)} does not exist"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, there_is_no)
            ranges = [self._narrowing.narrowed(each) for each in self._ranges(client, places)]
            ranges = self._from_times(client, [each for each in ranges if each.size > 0])
        return planned(ranges, settings)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        wanted = partition.value
        if wanted is None:  # how Spark runs a read of nothing
            return iter(())
        from penstock.spark.source.read import read_range  # tasks alone decode

        oldest, newest = self._narrowing.time_ms
        return read_range(wanted, self._settings, oldest_ms=oldest, newest_ms=newest)

    def _ranges(self, client: BlockingClient, places: list[TopicPartition]) -> list[OffsetRange]:
        settings = self._settings
        isolation = settings.fetch.isolation
        starts = resolve(client, settings.start, places, isolation)
        ends = resolve(client, settings.end, places, isolation)
        firsts, lasts = earliest(client, places), latest(client, places, isolation)
        fail = settings.fail_on_data_loss
        ranges = []
        for each in places:
            start, end = starts[each], ends[each]
            first, last = firsts[each], lasts[each]
            if start < first and start < end:
                report(f"{each} starts at offset {first}, not at {start}", fail=fail)
            if max(start, end) > last:
                report(f"{each} ends at offset {last}, not at {max(start, end)}", fail=fail)
            ranges.append(OffsetRange(each, max(start, first), min(end, last)))
        return ranges

    def _from_times(self, client: BlockingClient, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Ranges that begin where the first record as new as a filter wants lies.

        A time that is negative cannot be asked for: brokers have other meanings for such numbers.
        Records without a time (-1) and those from before 1970 are found by reading them.
        """
        oldest = self._narrowing.time_ms[0]
        if oldest < 0 or not ranges:
            return ranges
        asked = {each.place: oldest for each in ranges}
        found = list_offsets(client, asked, self._settings.fetch.isolation)
        return [
            OffsetRange(each.place, max(each.start, found[each.place]), each.end)
            for each in ranges
            if found[each.place] != NOT_FOUND
        ]


class FilteringReader(BatchReader):
    """The same where Spark hands over filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._narrowing, left = pushed(filters)
        return left
