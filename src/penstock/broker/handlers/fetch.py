"""Fetch (key 1, v4-v18): batches from an offset on, as slices of segment files for `sendfile`.

Waits until `min_bytes` are there or `max_wait_ms` is over. The first batch comes whole even if it
is larger than every limit. Full and incremental sessions (KIP-227), isolation level, topic ids.
A follower reads up to the log's end, and thereby tells how far it is. From v11 on consumers may
read followers, and are told which one is in their rack (KIP-392).
Refused: fetches in the name of a broker, but on the listener that brokers use.
"""

from collections.abc import Hashable, Iterable

from penstock.broker.context import Context
from penstock.broker.fetch_sessions import FetchSession, Wanted
from penstock.broker.translate.error_code import PARTITION_ERRORS, code_of
from penstock.broker.translate.leaders import endpoints, leader_of, partition_here
from penstock.broker.waiters import Parked, client_wait_ms
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.log.lookup import LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.metadata.topic_names import UnknownTopicId, topic_name
from penstock.replication import fencing
from penstock.replication.fencing import FencedLeaderEpoch, NotLeader
from penstock.replication.isr import FollowerFetch
from penstock.replication.partition import Partition
from penstock.replication.partitions import UnknownPartition
from penstock.replication.selector import ReplicaView, in_same_rack, is_rack_aware
from penstock.types import BrokerId
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_PREFERENCE = -1
NOT_DIVERGING = EpochEndOffset()


class NoBroker(KafkaError):
    """Only brokers read in the name of one: it would decide what counts as committed."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def fetch(request: FetchRequest, ctx: Context) -> FetchResponse | Parked[FetchResponse]:
    session = ctx.services.fetch_sessions.begin(request, uses_ids=ctx.version >= 13)
    reading = Reading(request, session, ctx)
    reading.read_all(arrives=True)
    if reading.is_ready(request.max_wait_ms) or not session.wanted:
        return reading.response()

    def attempt() -> FetchResponse | None:
        found_before = reading.size_bytes > 0
        reading.read_changed()
        if found_before and reading.is_ready(request.max_wait_ms):
            reading.read_all()  # what was found before may be gone
        return reading.response() if reading.is_ready(request.max_wait_ms) else None

    def expire() -> FetchResponse:
        reading.read_all()
        return reading.response()

    return Parked(
        reading.keys,
        client_wait_ms(reading.wait_ms),
        attempt,
        expire,
        reading.notice,
        # A follower that is given more to copy says so by asking anything.
        gives_way=reading.is_for_follower,
    )


class Reading:
    """What a request finds in the partitions of its session, now and while it waits.

    Only when a request arrives does it tell where a follower is: looking again later, when it
    may have died, must not make it look alive.
    """

    def __init__(self, request: FetchRequest, session: FetchSession, ctx: Context) -> None:
        self._session, self._arrives = session, False
        self.wait_ms = request.max_wait_ms
        """Less while a throttled follower is held back: nothing else would wake its request."""
        self._services = ctx.services
        self._cluster = ctx.services.cluster
        self._image = self._cluster.image
        self._throttle = ctx.services.replicas.leader_throttle
        self._listener = ctx.peer.listener
        self._from_followers = ctx.version >= 11
        self._rack = request.rack_id
        self._tells_leader = ctx.version >= 16
        self._committed = request.isolation_level == READ_COMMITTED
        known = {READ_UNCOMMITTED, READ_COMMITTED}
        self._is_valid = request.isolation_level in known and request.max_bytes >= 0
        self._replica = max(request.replica_id, request.replica_state.replica_id)
        self._broker_epoch = request.replica_state.replica_epoch
        self._is_broker = ctx.peer.listener == ctx.services.listeners.inter_broker_listener
        if self._rack:
            selector = ctx.services.config.replication.replica_selector_class
            self._rack = request.rack_id if is_rack_aware(selector) else ""
        self._max_bytes = min(request.max_bytes, ctx.services.config.network.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._found: list[tuple[Wanted, PartitionData | None]] = []
        self._at: dict[Hashable, int] = {}
        """Where in `_found` a partition is."""
        self._changed: set[Hashable] = set()
        self._max_slices = ctx.services.resources.file_shares.slices
        self._slices: dict[Hashable, tuple[Partition, int]] = {}
        """What would be sent, to be counted when it is: a fetch that waits reads many times."""

    def read_all(self, *, arrives: bool = False) -> None:
        self._arrives = arrives
        self._image = self._cluster.image
        self._left = self._max_bytes
        self.size_bytes = 0
        self.has_errors = self._is_full = False
        self._slices.clear()
        self._at.clear()
        self._changed.clear()
        found = self._found = []
        for wanted in self._session.wanted.values():
            found.append((wanted, self._read(wanted, len(found))))
        self._arrives = False

    def notice(self, key: Hashable) -> None:
        """The next reading has to look at this partition again."""
        self._changed.add(key)

    def read_changed(self) -> None:
        """Look only at what has changed: a session may have thousands of partitions, and a client
        that wants many bytes waits through thousands of changes.
        """
        self._image = self._cluster.image
        for key in self._changed:
            at = self._at.get(key)
            if at is None:
                continue  # another connection has gone on with the session, and forgotten it
            wanted, _ = self._found[at]
            if key in self._slices:
                _, size_bytes = self._slices.pop(key)
                self.size_bytes -= size_bytes
                self._left += size_bytes
            self._found[at] = (wanted, self._read(wanted, at))
        self._changed.clear()

    @property
    def keys(self) -> Iterable[Hashable]:
        return self._at

    @property
    def is_for_follower(self) -> bool:
        return self._replica >= 0

    def is_ready(self, max_wait_ms: int) -> bool:
        enough = self._is_full or self.size_bytes >= self._min_bytes
        return enough or max_wait_ms <= 0 or self.has_errors

    def _read(self, wanted: Wanted, at: int) -> PartitionData | None:
        """What there is to tell; None: neither records nor news."""
        try:
            if not self._is_valid or wanted.max_bytes < 0:
                raise InvalidRequest("a negative limit, or an isolation level that there is not")
            name = topic_name(
                wanted.topic, wanted.topic_id, self._image, by_id=self._session.uses_ids
            )
            partition = partition_here(self._services, name, wanted.index)
            self._at[partition.topic_partition] = at
            if self._replica >= 0:
                return self._read_for_follower(partition, wanted)
            if self._from_followers:
                fencing.check_readable(partition, max(wanted.leader_epoch, -1))
            else:
                fencing.check_leader(partition, max(wanted.leader_epoch, -1))
            preferred = self._preferred(partition, wanted) if self._rack else NO_PREFERENCE
            if preferred != NO_PREFERENCE:
                self.has_errors = True  # worth an answer at once
                return self._told(partition, wanted, preferred=preferred)
            return self._read_from(partition, wanted)
        except PARTITION_ERRORS as error:
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
            name = self._image.topic_names.get(wanted.topic_id, "")
            found = leader_of(self._image, name, wanted.index)
            if found is not None:
                return LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
        return LeaderIdAndEpoch()

    def _read_for_follower(self, partition: Partition, wanted: Wanted) -> PartitionData | None:
        if not self._is_broker:
            raise NoBroker(f"{self._listener} is not the listener that brokers use")
        fencing.check_leader(partition, max(wanted.leader_epoch, -1))
        fencing.check_follower(partition, self._replica, wanted.leader_epoch, self._broker_epoch)
        at_the_end = has_everything(partition.log, wanted)
        records = None
        if not at_the_end:
            diverged = self._diverged(partition, wanted)
            if diverged is not None:
                return diverged
            records = self._slice_for_follower(partition, wanted)
        if self._arrives:
            partition.fetched(
                FollowerFetch(
                    self._replica, wanted.fetch_offset, wanted.log_start_offset, self._broker_epoch
                )
            )
        if at_the_end and self._session.is_incremental and not is_moved(partition.log, wanted):
            return None
        return self._told(partition, wanted, records=records)

    def _slice_for_follower(self, partition: Partition, wanted: Wanted) -> LogSlice | None:
        """What it asks for, unless an operator holds it back: then nothing for now."""
        throttled = self._throttle.concerns(partition, self._replica)
        if throttled and (owed_ms := self._throttle.delay_ms(self.wait_ms)):
            self.wait_ms = owed_ms
            return None
        records = self._slice(partition, wanted, partition.log.end_offset)
        if throttled and records is not None:
            self._throttle.record(records.size_bytes)
        return records

    def _read_from(self, partition: Partition, wanted: Wanted) -> PartitionData:
        diverged = self._diverged(partition, wanted)
        if diverged is not None:
            return diverged
        up_to = partition.visible_end(read_committed=self._committed)
        records = self._slice(partition, wanted, up_to)
        aborted = None
        if self._committed and records is not None:
            aborted = aborted_transactions(partition.log, wanted.fetch_offset, records, up_to)
        return self._told(partition, wanted, records=records, aborted=aborted)

    def _slice(self, partition: Partition, wanted: Wanted, up_to: int) -> LogSlice | None:
        if len(self._slices) >= self._max_slices:
            self._is_full |= wanted.fetch_offset < up_to
            return None  # each holds a file open: the others get their turn, as after `max_bytes`
        room = min(wanted.max_bytes, self._left)
        found = partition.log.read(
            wanted.fetch_offset,
            room,
            up_to=up_to,
            min_one_batch=self.size_bytes == 0,
        )
        if found is not None:
            self.size_bytes += found.size_bytes
            self._left = max(0, self._left - found.size_bytes)
            self._slices[partition.topic_partition] = partition, found.size_bytes
        elif self.size_bytes and wanted.fetch_offset < up_to:
            # What does not fit now will not fit later: it counts as if it did, as in Kafka.
            self._is_full |= self.size_bytes + room >= self._min_bytes
        return found

    def _diverged(self, partition: Partition, wanted: Wanted) -> PartitionData | None:
        found = fencing.diverging_epoch(partition, wanted.last_fetched_epoch, wanted.fetch_offset)
        if found is None:
            return None
        self.has_errors = True  # worth an answer at once
        diverging = EpochEndOffset(epoch=found.epoch, end_offset=found.end_offset)
        return self._told(partition, wanted, diverging=diverging)

    def _told(
        self,
        partition: Partition,
        wanted: Wanted,
        *,
        records: LogSlice | None = None,
        aborted: list[AbortedTransaction] | None = None,
        diverging: EpochEndOffset = NOT_DIVERGING,
        preferred: int = NO_PREFERENCE,
    ) -> PartitionData:
        log = partition.log
        return PartitionData(
            partition_index=wanted.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=(aborted or []) if self._committed else None,
            preferred_read_replica=preferred,
            records=b"" if records is None else records,
        )

    def _preferred(self, partition: Partition, wanted: Wanted) -> int:
        """The follower in the consumer's rack that it should read, if this broker leads."""
        if not partition.leads:
            return NO_PREFERENCE
        brokers = self._image.brokers
        readable = [
            ReplicaView(replica, broker.rack, end_offset, behind_ms)
            for replica, end_offset, behind_ms in partition.readable_followers(wanted.fetch_offset)
            if (broker := brokers.get(BrokerId(replica))) is not None
            and broker.endpoint(self._listener) is not None
        ]
        own = brokers.get(BrokerId(partition.leader))
        leader = ReplicaView(partition.leader, own.rack if own else None, 0, 0)
        chosen = in_same_rack(self._rack, leader, readable)
        return NO_PREFERENCE if chosen is None else chosen

    def response(self) -> FetchResponse:
        session = self._session
        for partition, size_bytes in self._slices.values():
            if self._replica >= 0:
                partition.replication_bytes_out += size_bytes
            else:
                partition.bytes_out += size_bytes
        chosen = [
            (wanted, data)
            for wanted, data in self._found
            if data is not None and (not session.is_incremental or is_news(wanted, data))
        ]
        for wanted, data in chosen:
            wanted.told_high_watermark = data.high_watermark
            wanted.told_log_start = data.log_start_offset
            wanted.told_error = bool(data.error_code)
            if session.is_incremental and isinstance(data.records, LogSlice):
                session.to_the_end(wanted)
        return FetchResponse(
            session_id=session.id,
            responses=list(by_topic(chosen)),
            node_endpoints=self._leaders(chosen) if self.has_errors and self._tells_leader else [],
        )

    def _leaders(self, chosen: Iterable[tuple[Wanted, PartitionData]]) -> list[NodeEndpoint]:
        """The addresses of the leaders that the response names; brokers know each other's."""
        if self.is_for_follower:
            return []
        told = (data.current_leader.leader_id for _, data in chosen)
        leaders = [leader for leader in told if leader >= 0]
        return [
            NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in endpoints(self._image, self._listener, leaders)
        ]


def is_unknown(error: Exception) -> bool:
    """Nothing was looked for in a log; Kafka then tells an empty list, not none."""
    return isinstance(error, (UnknownPartition, UnknownTopicId, InvalidRequest))


def has_everything(log: PartitionLog, wanted: Wanted) -> bool:
    """The reader's log ends where this one does, and in the same epoch: the usual case by far."""
    return (
        wanted.fetch_offset == log.end_offset
        and wanted.last_fetched_epoch in {-1, log.epochs.latest}
        and wanted.fetch_offset >= log.log_start_offset
    )


def is_moved(log: PartitionLog, wanted: Wanted) -> bool:
    """Whether the client was last told anything else than what holds now."""
    return (
        wanted.told_error
        or log.high_watermark != wanted.told_high_watermark
        or log.log_start_offset != wanted.told_log_start
    )


def is_news(wanted: Wanted, data: PartitionData) -> bool:
    """Whether an incremental response has to tell of this partition."""
    return (
        isinstance(data.records, LogSlice)
        or data.error_code != ErrorCode.NONE
        or wanted.told_error
        or data.high_watermark != wanted.told_high_watermark
        or data.log_start_offset != wanted.told_log_start
        or data.diverging_epoch.end_offset >= 0
        or data.preferred_read_replica != NO_PREFERENCE
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


def aborted_transactions(
    log: PartitionLog, start: int, found: LogSlice, up_to: int
) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in log.aborted_in(start, found, up_to)
    ]
