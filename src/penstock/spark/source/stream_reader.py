"""A streaming read: the driver's side of micro-batches. `admission` decides how much they take."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from penstock.client.errors import BrokerRefused
from penstock.client.listing import IsolationLevel
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.source.admission import limited, waits
from penstock.spark.source.batch_reader import planned
from penstock.spark.source.bounds import may_be_end
from penstock.spark.source.data_loss import report
from penstock.spark.source.lookup import (
    ResolvedBound,
    commit,
    earliest,
    latest,
    resolve,
    topics_of,
)
from penstock.spark.source.positions import as_json, from_json
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.settings import SourceSettings
from penstock.spark.source.subscription import subscribed
from penstock.types import NO_UUID, Offset, TopicPartition, Uuid

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("penstock.spark")
Positions = dict[TopicPartition, Offset]


GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One instance lives in the driver as long as the query; tasks get copies.

    When Spark calls `latestOffset`, all records before its start are processed: Spark plans a
    micro-batch only after the previous one. So that is when the group's progress is committed.
    Spark's own `commit` comes later, and never after the last batch of an availableNow run.

    Spark asks for the initial offset several times, and again after a restart until the first
    micro-batch is committed, but does not write it down. Where it is the present end of a log, the
    first micro-batch therefore ends there too: so the checkpoint has it.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._client: BlockingClient | None = None
        self._initial: ResolvedBound | None = None
        """Where the query starts, unless a checkpoint says it."""
        self._target: Positions | None = None
        """Where an availableNow run ends."""
        self._latest: Positions | None = None
        self._committed: Positions = {}
        self._topic_ids: dict[str, Uuid] = {}
        self._recreated: set[str] = set()
        """Topics deleted and created again, whose old positions mean nothing."""
        self._given_up: set[TopicPartition] = set()
        """Partitions that the last look did not find, however long it waited. The checkpoint may
        keep them while a micro-batch waits for more records.
        """
        self._planned_end: dict[str, Any] | None = None
        """Where the planned micro-batch ends, until the next one is asked for."""
        self._known_before: frozenset[str] = frozenset()
        """Topics whose ids were known when their ends were last requested: positions in them come
        from this run and the current topic, unless it is in `_recreated`.
        """
        self._batch_at = float("-inf")

    def __getstate__(self) -> dict[str, Any]:
        """Connections are not pickled."""
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        if self._initial is None:
            partitions = self._partitions(known=())
            client = self._connected()
            isolation = self._settings.fetch.isolation
            offsets, at_end = resolve(client, self._settings.start, partitions, isolation)
            # An availableNow run has already decided what the latest offsets are.
            decided = self._target or {}
            offsets |= {each: decided[each] for each in at_end & decided.keys()}
            self._initial = ResolvedBound(offsets, at_end)
        return as_json(self._initial.offsets)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        limits = self._settings.limits
        if limits.at_most is not None:
            return ReadMaxRows(limits.at_most)
        if limits.at_least is not None:
            return ReadMinRows(limits.at_least)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._look(known=())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begun = from_json(start)
        self._commit(begun)
        is_new = self._latest is None and self._planned_end is None
        if start == self._planned_end:
            self._recreated.clear()  # its positions are of the new topics
            self._planned_end = None
        if self._target is None:
            ends = self._look(known=begun)
        else:
            if begun.keys() - self._target.keys() and not self._settings.fail_on_data_loss:
                self._target = self._ends(known=begun) | self._target
            ends = self._target
        ends = self._not_unstable(begun, ends)
        self._latest = ends
        if is_new and self._is_initial(begun) and self._initial is not None:
            ends = ends | {each: begun[each] for each in self._initial.at_end & ends.keys()}
        return self._limited(begun, ends, limit)

    def _is_initial(self, begun: Positions) -> bool:
        return self._initial is not None and begun == self._initial.offsets

    def _initial_of_checkpoint(self, initial: Positions, ends: Positions) -> Positions:
        """Where a first micro-batch started that an earlier run planned, from where it ends and
        where the query would start now. Partitions may have been added since.
        """
        bound, at_end = self._settings.start, self._initial.at_end if self._initial else ()
        return {
            each: ends[each]
            if each in at_end or (first > ends[each] and may_be_end(bound, each))
            else first
            for each, first in initial.items()
            if each in ends
        }

    def _limited(self, begun: Positions, ends: Positions, limit: ReadLimit) -> dict[str, Any]:
        """Where a micro-batch ends, by the settings' limits."""
        limits = self._settings.limits
        if isinstance(limit, ReadAllAvailable):
            return as_json(ends)
        positions = begun | self._new_starts(begun, ends)
        waited_ms = (monotonic() - self._batch_at) * 1000
        # An availableNow run does not wait for more records.
        if self._target is None and waits(limits, positions, ends, waited_ms):
            return as_json(begun)
        self._batch_at = monotonic()
        if limits.at_most is not None:
            ends = limited(limits.at_most, positions, ends)
        return as_json(ends)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return None if self._latest is None else as_json(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begun, ends = from_json(start), from_json(end)
        if self._latest is None and self._is_initial(begun):
            begun = self._initial_of_checkpoint(begun, ends)
        starts = begun | self._new_starts(begun, ends)
        gone = sorted(begun.keys() - ends.keys())
        if gone:
            self._report(f"{', '.join(map(str, gone))} existed and is gone")
        ranges = []
        for each, last in ends.items():
            first = starts[each]
            is_known = each.topic in self._known_before - self._recreated
            if first > last and is_known:
                # For example by an unclean election. The records left before the end were read.
                self._report(f"{each} went from offset {first} to {last}: its log was truncated")
                first = last
            elif first > last or each.topic in self._recreated:
                self._report(f"{each} went from offset {first} to {last}: its topic was recreated")
                first = earliest(self._connected(), [each])[each]
            topic_id = self._topic_ids.get(each.topic, NO_UUID)
            ranges.append(OffsetRange(each, first, last, topic_id))
        self._planned_end = end  # Spark may plan it again, with the same result
        return planned(ranges, self._settings)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from penstock.spark.source.read import read_range  # only tasks decode

        return read_range(partition.value, self._settings)

    def commit(self, end: dict[str, Any]) -> None:
        self._commit(from_json(end))

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connected(self) -> BlockingClient:
        if self._client is None:
            self._client = BlockingClient(self._settings.client)
        return self._client

    def _look(self, known: Iterable[TopicPartition]) -> Positions:
        self._known_before = frozenset(
            name for name, topic_id in self._topic_ids.items() if topic_id != NO_UUID
        )
        return self._ends(known)

    def _ends(self, known: Iterable[TopicPartition]) -> Positions:
        known = list(known)
        try:
            return self._latest_of(self._partitions(known))
        except BrokerRefused as error:
            if error.code not in GONE:
                raise
            # A topic was deleted between the two requests: the next metadata request shows it.
            return self._latest_of(self._partitions(known))

    def _latest_of(self, partitions: list[TopicPartition]) -> Positions:
        return latest(self._connected(), partitions, self._settings.fetch.isolation)

    def _partitions(self, known: Collection[TopicPartition]) -> list[TopicPartition]:
        """The current partitions; remembers topics that were recreated."""
        # A partition that leaves the checkpoint by mistake would be read again from its start.
        waited_for = [each for each in known if each not in self._given_up]
        topics = topics_of(
            self._connected(),
            self._settings.subscription,
            {each: self._topic_ids.get(each.topic, NO_UUID) for each in waited_for},
            waits_for_deleted=not self._settings.fail_on_data_loss,
        )
        partitions, missing = subscribed(self._settings.subscription, topics)
        if not self._settings.fail_on_data_loss:
            self._given_up = set(known).difference(partitions)
        if missing:
            what = f"{', '.join(missing)} does not exist"
            if not known and self._settings.fail_on_data_loss:
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
            self._report(f"{what} any more" if known else what)
        for name in {each.topic for each in partitions}:
            if self._topic_ids.setdefault(name, topics[name].id) != topics[name].id:
                self._topic_ids[name] = topics[name].id
                self._recreated.add(name)
        return partitions

    def _not_unstable(self, begun: Positions, ends: Positions) -> Positions:
        """The ends, but not before a position inside open transactions. A query has such a position
        if it read uncommitted records before: it waits for those transactions, since nothing was
        truncated.
        """
        if self._settings.fetch.isolation is IsolationLevel.READ_UNCOMMITTED:
            return ends
        before = [
            each
            for each, end in ends.items()
            if end < begun.get(each, end) and each.topic not in self._recreated
        ]
        if not before:
            return ends
        written = latest(self._connected(), before, IsolationLevel.READ_UNCOMMITTED)
        return ends | {each: begun[each] for each in before if begun[each] <= written[each]}

    def _new_starts(self, begun: Positions, ends: Positions) -> Positions:
        """The start of partitions that were added: their first record."""
        added = sorted(ends.keys() - begun.keys())
        if not added:
            return {}
        there = added
        if not self._settings.fail_on_data_loss:
            # A checkpoint may plan a topic that was deleted since: its tasks report that.
            topics = self._connected().existing({each.topic for each in added})
            there = [each for each in added if each.topic in topics]
        starts = earliest(self._connected(), there)
        for each, first in starts.items():
            if first > 0:
                self._report(f"{each} was added and starts at offset {first}, not at 0")
        return dict.fromkeys(added, Offset(0)) | starts

    def _report(self, what: str) -> None:
        report(what, fail=self._settings.fail_on_data_loss)

    def _commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        group = self._settings.group_id
        if group is None or offsets == self._committed:
            return
        try:
            commit(self._connected(), group, offsets)
        except KafkaError as error:
            # Spark's checkpoint decides; the group only shows the job's progress.
            logger.warning("could not commit the progress to group %s: %s", group, error)
        else:
            self._committed = dict(offsets)
