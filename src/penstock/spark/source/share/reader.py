"""A streaming read of a share group: the driver's side of micro-batches.

The driver is the only member of the group. It locks records before a micro-batch, and Spark writes
their offsets to its checkpoint. Tasks then read them by offset, as from any topic. So there may be
more tasks than partitions, and a task or micro-batch that runs again reads the same records.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.client.listing import IsolationLevel
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.source.lookup import latest, partitions_of
from penstock.spark.source.settings import SourceSettings
from penstock.spark.source.share.consumer import SparkShareConsumer
from penstock.spark.source.share.held_records import IdentifiedRecords
from penstock.spark.source.share.share_offset import SparkShareOffset, share_offset
from penstock.spark.source.share.task import ShareTaskRecords, divided
from penstock.spark.source.subscription import wanted_names
from penstock.types import Offset, TopicPartition, Uuid

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_WAIT_MS: Final = 3000
"""Wait for the first record of an availableNow run: a broker may still load the group's state."""


class SharedPartition(InputPartition):
    """One task's records."""

    def __init__(self, wanted: ShareTaskRecords) -> None:
        super().__init__(wanted)


class ShareStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance lives in the driver as long as the query; tasks get copies.

    Records are accepted when Spark calls `latestOffset` after their micro-batch, or `commit`: by
    then the micro-batch is committed. This applies only to micro-batches that this instance
    planned: records in a checkpoint of an earlier run may be old, and the group may have been reset
    since.
    """

    def __init__(self, settings: SourceSettings, group: str) -> None:
        self._settings, self._group = settings, group
        self._consumer: SparkShareConsumer | None = None
        self._planned: SparkShareOffset | None = None
        """The running micro-batch, or the last one."""
        self._ids: Mapping[str, Uuid] = {}
        """Ids of the topics that it reads."""
        self._target: dict[TopicPartition, Offset] | None = None
        """Where an availableNow run ends."""
        self._found_any = False

    def __getstate__(self) -> dict[str, Any]:
        """The group's member stays in the driver."""
        return {**self.__dict__, "_consumer": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return SparkShareOffset(self._group).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        at_most = self._settings.limits.at_most
        return ReadAllAvailable() if at_most is None else ReadMaxRows(at_most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        with BlockingClient(self._settings.client) as client:
            partitions, _ = partitions_of(client, self._settings.subscription)
            self._target = latest(client, partitions, IsolationLevel.READ_UNCOMMITTED)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begun = share_offset(start, self._group)
        self._finish(begun)
        at_most = None if isinstance(limit, ReadAllAvailable) else self._settings.limits.at_most
        wait_ms = self._settings.fetch.max_wait_ms
        if self._target is not None and not self._found_any:
            wait_ms = max(wait_ms, FIRST_WAIT_MS)
        found = self._joined().acquire(at_most, wait_ms, self._target)
        if not found.records:
            return start
        self._found_any = True
        return SparkShareOffset(self._group, begun.batch + 1, found.records, found.ids).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start == end:
            return []
        offset = share_offset(end, self._group)
        if self._consumer is None:
            # This micro-batch ran before, in another process, and its locks have ended. Lock again
            # what no other member has taken meanwhile, so that none does.
            self._joined().acquire(None, self._settings.fetch.max_wait_ms, None)
        self._planned, self._found_any = offset, True
        # An old checkpoint has no ids: then assume the current topics.
        self._ids = offset.ids or self._joined().topic_ids()
        pieces = divided(
            offset.records,
            self._ids,
            at_least=self._settings.min_partitions,
            at_most_records=self._settings.max_records_per_partition,
        )
        return [SharedPartition(each) for each in pieces]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from penstock.spark.source.share.read import read_shared  # only tasks decode

        return read_shared(partition.value, self._settings)

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(share_offset(end, self._group))

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.stop()
            self._consumer = None

    def _finish(self, offset: SparkShareOffset) -> None:
        if self._planned == offset:
            self._joined().finish(IdentifiedRecords(offset.records, self._ids))
            self._planned = None

    def _joined(self) -> SparkShareConsumer:
        if self._consumer is None:
            settings = self._settings
            topics = tuple(wanted_names(settings.subscription) or ())
            self._consumer = SparkShareConsumer(
                settings.client, self._group, topics, settings.fetch.partition_bytes
            )
            self._consumer.join()
        return self._consumer
