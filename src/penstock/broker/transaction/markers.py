"""Writes the markers that end transactions: here, or on the leaders of their partitions."""

from collections.abc import Callable, Collection
from functools import lru_cache

from penstock.broker.cluster import Cluster
from penstock.broker.parked import Parked
from penstock.broker.transaction.marker_outbox import RemoteMarker
from penstock.broker.transaction.verification import PendingVerifications
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.metadata.records import NO_LEADER
from penstock.record.batch import read_header
from penstock.record.control import build_marker
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition

RETRY_MS = 100
"""A dead leader is replaced within a second or so."""


@lru_cache(maxsize=1)
def marker_batch(marker: TransactionMarker, coordinator_epoch: int, now_ms: int) -> bytes:
    """Built once for all participants, which append it one after the other."""
    batch = build_marker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        committed=marker.committed,
        coordinator_epoch=coordinator_epoch,
        timestamp=now_ms,
    )
    return bytes(batch)


class WrittenMarker:
    """A marker in a log, perhaps not replicated yet.

    With a `refusal`, the log refused it because of a newer epoch: the marker that ended the
    transaction lies before `end`. It may be this marker, sent earlier.
    """

    def __init__(
        self,
        partition: Partition,
        end: int,
        *,
        needs_flush: bool,
        refusal: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self._partition, self._end, self._needs_flush = partition, end, needs_flush
        self.refusal = refusal
        self._tenure = partition.tenure
        self._was_committed = False

    @property
    def is_lost(self) -> bool:
        """Leadership has changed since; the new leader may lack the marker."""
        return not self._was_committed and not self._partition.is_in_tenure(self._tenure)

    def is_committed(self) -> bool:
        """All in-sync replicas have the marker."""
        log = self._partition.log
        self._was_committed = self._was_committed or (
            not self.is_lost
            and log.high_watermark >= self._end
            and (not self._needs_flush or log.recovery_point >= self._end)
        )
        return self._was_committed


class MarkerLogs:
    """Appends markers to logs that this broker leads. Belongs to the event loop."""

    def __init__(
        self,
        partitions: Partitions,
        groups: GroupCoordinator,
        clock: Clock,
        verifications: PendingVerifications,
    ) -> None:
        self._partitions, self._groups, self._verifications = partitions, groups, verifications
        self._clock = clock

    def append(
        self, tp: TopicPartition, marker: TransactionMarker, coordinator_epoch: int
    ) -> WrittenMarker:
        """Append a marker. Refused like any append, and if the coordinator has been replaced.

        A marker of an older epoch is not appended, but counts only once everything in the log is
        committed: a new leader may lack the marker that ended the transaction.
        """
        partition = self._partitions.get(*tp)
        partition.check_leader()  # only the leader knows what was appended before
        now_ms = self._clock.now_ms()
        batch = bytearray(marker_batch(marker, coordinator_epoch, now_ms))
        log = partition.log
        try:
            if marker.bumps_epoch:
                log.producers.check_next_epoch(marker.producer_id, marker.producer_epoch)
            appended = partition.append(batch, read_header(batch), -1, now_ms, from_client=False)
        except InvalidProducerEpoch as error:
            return WrittenMarker(
                partition, log.end_offset, needs_flush=log.flush_due, refusal=error.code
            )
        self._verifications.marker_appended(tp, marker.producer_id)
        if tp.topic == CONSUMER_OFFSETS:
            self._groups.runtime.end_transaction(
                tp.partition, marker.producer_id, committed=marker.committed
            )
        return WrittenMarker(partition, appended.last_offset + 1, needs_flush=appended.flush_due)


class ClusterMarkers:
    """Writes markers to the leaders of all participants. Belongs to the event loop."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        logs: MarkerLogs,
        waiters: Waiters,
        post: Callable[[BrokerId, RemoteMarker], object],
    ) -> None:
        self._broker_id, self._cluster, self._partitions = broker_id, cluster, partitions
        self.logs, self.waiters, self.post = logs, waiters, post

    def write(
        self,
        marker: TransactionMarker,
        participants: Collection[TopicPartition],
        coordinator: int,
        done: Callable[[], object],
    ) -> None:
        state = self._partitions.find(TRANSACTION_STATE, coordinator)
        if state is None or not state.leads:
            return  # this broker is no longer the coordinator; the current one writes them
        round_ = MarkerRound(self, marker, participants, state)
        if round_.attempt():
            done()
        else:
            self._wait(round_, done)

    def _wait(self, round_: "MarkerRound", done: Callable[[], object]) -> None:
        def ended(finished: bool) -> None:  # noqa: FBT001  the waiter's result
            if finished:
                done()
            elif not round_.is_over():
                self._wait(round_, done)

        def expire() -> bool:
            return not round_.is_over() and round_.attempt() is True

        keys = (*round_.participants, round_)
        self.waiters.park(Parked(keys, RETRY_MS, round_.attempt, expire), ended)

    def exists(self, tp: TopicPartition) -> bool:
        """Whether the partition exists in the cluster, though perhaps not on this broker yet."""
        return self._cluster.image.partition(tp) is not None

    def leader_of(self, tp: TopicPartition) -> BrokerId | None:
        """The other broker to send to; None if the partition is led here, or has no leader now."""
        here = self._partitions.find(*tp)
        known = self._cluster.image.partition(tp)
        if (here is not None and here.leads) or known is None:
            return None
        return None if known.leader in {NO_LEADER, self._broker_id} else known.leader


class MarkerRound:
    """The markers of one transaction, until all participants have them."""

    def __init__(
        self,
        markers: ClusterMarkers,
        marker: TransactionMarker,
        participants: Collection[TopicPartition],
        state: Partition,
    ) -> None:
        self._markers, self._marker = markers, marker
        self._state, self._tenure = state, state.tenure
        self.participants = participants
        self._missing = set(participants)
        self._under_way: set[TopicPartition] = set()
        """Missing partitions whose marker was sent to a broker that has not answered yet."""
        self._written: dict[TopicPartition, WrittenMarker] = {}

    def is_over(self) -> bool:
        """Another broker is or has been the coordinator since, and sends its own markers."""
        return not self._state.is_in_tenure(self._tenure)

    def attempt(self) -> bool | None:
        """Send what is missing. True once every participant has committed it; None before."""
        if self.is_over():
            return None
        for tp in [each for each, written in self._written.items() if written.is_lost]:
            del self._written[tp]
            self._missing.add(tp)
        elsewhere: dict[BrokerId, list[TopicPartition]] = {}
        for tp in sorted(self._missing - self._under_way):
            leader = self._markers.leader_of(tp)
            if leader is None:
                self._write_here(tp)
            else:
                elsewhere.setdefault(leader, []).append(tp)
        for leader, topic_partitions in elsewhere.items():
            self._send(leader, tuple(topic_partitions))
        if self._missing or not all(each.is_committed() for each in self._written.values()):
            return None
        return True

    def _write_here(self, tp: TopicPartition) -> None:
        try:
            self._written[tp] = self._markers.logs.append(
                tp, self._marker, self._state.leader_epoch
            )
        except (KafkaError, StorageError):
            if self._markers.exists(tp):
                return  # it has no leader, too few replicas or no disk now: try again
        self._missing.discard(tp)

    def _send(self, leader: BrokerId, topic_partitions: tuple[TopicPartition, ...]) -> None:
        self._under_way.update(topic_partitions)
        self._markers.post(
            leader,
            RemoteMarker(self._marker, self._state.leader_epoch, topic_partitions, self._answered),
        )

    def _answered(self, tp: TopicPartition, code: int) -> None:
        """Handle a response. A refused marker is sent again at the next attempt, perhaps to a new
        leader.
        """
        self._under_way.discard(tp)
        if code in {ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH}:
            self._missing.discard(tp)
            self._markers.waiters.changed(self)
