"""Fetch (key 1, v4-v18): batches from an offset on, as slices of segment files for `sendfile`.

Waits until `min_bytes` are there or `max_wait_ms` is over. The first batch comes whole even if it
is larger than every limit. Full and incremental sessions (KIP-227), isolation level, topic ids.
Refused: requests in the name of a replica, until there are other brokers.
Left out: reading from followers (KIP-392).
"""

from collections.abc import Iterable

from penstock.broker.context import Context
from penstock.broker.fetch_sessions import FetchSession, Wanted
from penstock.broker.translate.refusal import Refusal, code_of
from penstock.broker.translate.topics import UnknownTopicId, topic_name
from penstock.broker.waiters import Parked
from penstock.controller.topic_rules import InvalidRequest
from penstock.errors import ErrorCode
from penstock.log.append import OffsetOutOfRange
from penstock.log.lookup import LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.replication.partition import Partition
from penstock.replication.partitions import UnknownPartition
from penstock.replication.refusal import FencedLeaderEpoch, NotLeader
from penstock.types import TopicPartition
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def fetch(request: FetchRequest, ctx: Context) -> FetchResponse | Parked[FetchResponse]:
    session = ctx.services.fetch_sessions.begin(
        request, uses_ids=ctx.version >= 13, now_ms=ctx.now_ms
    )
    reading = Reading(request, session, ctx)
    if reading.is_ready(request.max_wait_ms) or not session.wanted:
        return reading.response()

    def attempt() -> FetchResponse | None:
        again = Reading(request, session, ctx)
        return again.response() if again.is_ready(request.max_wait_ms) else None

    def expire() -> FetchResponse:
        return Reading(request, session, ctx).response()

    return Parked(reading.keys, request.max_wait_ms, attempt, expire)


class Reading:
    """One pass over the partitions of a session."""

    def __init__(self, request: FetchRequest, session: FetchSession, ctx: Context) -> None:
        self._session = session
        self._partitions = ctx.services.partitions
        self._image = ctx.services.cluster.image
        self._tells_leader = ctx.version >= 16
        self._committed = request.isolation_level == READ_COMMITTED
        known = {READ_UNCOMMITTED, READ_COMMITTED}
        self._is_valid = request.isolation_level in known and request.max_bytes >= 0
        self._replica = max(request.replica_id, request.replica_state.replica_id)
        self._min_bytes = request.min_bytes
        self._left = min(request.max_bytes, ctx.services.config.network.fetch_max_bytes)
        self.size_bytes = 0
        self.has_errors = False
        self.keys: list[TopicPartition] = []
        self._found = [(wanted, self._read(wanted)) for wanted in session.wanted.values()]

    def is_ready(self, max_wait_ms: int) -> bool:
        return max_wait_ms <= 0 or self.has_errors or self.size_bytes >= self._min_bytes

    def _read(self, wanted: Wanted) -> PartitionData:
        try:
            if not self._is_valid or wanted.max_bytes < 0:
                raise InvalidRequest("a negative limit, or an isolation level that there is not")
            if self._replica >= 0:
                raise NotLeader(f"broker {self._replica} holds no replica of {wanted.topic}")
            name = topic_name(
                wanted.topic, wanted.topic_id, self._image, by_id=self._session.uses_ids
            )
            partition = self._partitions.get(name, wanted.index)
            self.keys.append(partition.topic_partition)
            partition.check_leader(max(wanted.leader_epoch, -1))
            return self._read_from(partition, wanted)
        except Refusal as error:
            self.has_errors = True
            return PartitionData(
                partition_index=wanted.index,
                error_code=code_of(error),
                high_watermark=-1,
                current_leader=self._leader_instead(wanted, error),
                aborted_transactions=[] if self._committed or is_unknown(error) else None,
                records=b"",
            )

    def _leader_instead(self, wanted: Wanted, error: Exception) -> LeaderIdAndEpoch:
        """Who leads now, told with the refusal so that the client need not ask (KIP-951)."""
        if self._tells_leader and isinstance(error, (NotLeader, FencedLeaderEpoch)):
            topic = self._image.topic_by_id(wanted.topic_id)
            found = None if topic is None else topic.partitions.get(wanted.index)
            if found is not None:
                return LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)
        return LeaderIdAndEpoch()

    def _read_from(self, partition: Partition, wanted: Wanted) -> PartitionData:
        log = partition.log
        diverging = diverged(log, wanted)
        if diverging is not None:
            self.has_errors = True  # worth an answer at once
            return PartitionData(
                partition_index=wanted.index,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.log_start_offset,
                diverging_epoch=diverging,
                aborted_transactions=[] if self._committed else None,
                records=b"",
            )
        up_to = partition.visible_end(read_committed=self._committed)
        found = log.read(
            wanted.fetch_offset,
            min(wanted.max_bytes, self._left),
            up_to=up_to,
            min_one_batch=self.size_bytes == 0,
        )
        if found is not None:
            self.size_bytes += found.size_bytes
            self._left = max(0, self._left - found.size_bytes)
            partition.bytes_out += found.size_bytes
        aborted = None
        if self._committed:
            aborted = aborted_transactions(log, wanted.fetch_offset, up_to) if found else []
        return PartitionData(
            partition_index=wanted.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=b"" if found is None else found,
        )

    def response(self) -> FetchResponse:
        session = self._session
        chosen = self._found
        if session.is_incremental:
            chosen = [pair for pair in chosen if is_news(*pair)]
        for wanted, data in chosen:
            wanted.told_high_watermark = data.high_watermark
            wanted.told_log_start = data.log_start_offset
            wanted.told_error = bool(data.error_code)
            if session.is_incremental and isinstance(data.records, LogSlice):
                session.to_the_end(wanted)
        return FetchResponse(session_id=session.id, responses=list(by_topic(chosen)))


def is_unknown(error: Exception) -> bool:
    """Nothing was looked for in a log; Kafka then tells an empty list, not none."""
    return isinstance(error, (UnknownPartition, UnknownTopicId, InvalidRequest))


def is_news(wanted: Wanted, data: PartitionData) -> bool:
    """Whether an incremental response has to tell of this partition."""
    return (
        isinstance(data.records, LogSlice)
        or data.error_code != ErrorCode.NONE
        or wanted.told_error
        or data.high_watermark != wanted.told_high_watermark
        or data.log_start_offset != wanted.told_log_start
        or data.diverging_epoch.end_offset >= 0
    )


def by_topic(found: Iterable[tuple[Wanted, PartitionData]]) -> Iterable[FetchableTopicResponse]:
    """Neighbours of one topic together, in the order of reading."""
    topic: Wanted | None = None
    parts: list[PartitionData] = []
    for wanted, data in found:
        if topic is None or (topic.topic, topic.topic_id) != (wanted.topic, wanted.topic_id):
            if topic is not None:
                yield topic_response(topic, parts)
            topic, parts = wanted, []
        parts.append(data)
    if topic is not None:
        yield topic_response(topic, parts)


def topic_response(topic: Wanted, parts: list[PartitionData]) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=parts)


def diverged(log: PartitionLog, wanted: Wanted) -> EpochEndOffset | None:
    """Where the reader's log and this one part, if the reader tells its last epoch (KIP-595)."""
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.offset_for_leader_epoch(wanted.last_fetched_epoch)
    if epoch < 0:
        raise OffsetOutOfRange(wanted.fetch_offset, log.log_start_offset, log.end_offset)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def aborted_transactions(log: PartitionLog, start: int, end: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted_between(start, end)
    ]
