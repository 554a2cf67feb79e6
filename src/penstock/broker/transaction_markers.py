"""Writes the markers that end transactions into the partitions that this broker leads."""

from collections.abc import Callable, Collection
from functools import lru_cache

from penstock.broker.cluster import Cluster
from penstock.broker.waiters import Parked, Waiters
from penstock.clock import Clock
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.transaction.completion import Verdict
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import KafkaError, StorageError
from penstock.log.flush import Flusher
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.record.batch import read_header
from penstock.record.control import build_marker
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import TopicPartition

RETRY_MS = 500


@lru_cache(maxsize=1)
def marker(verdict: Verdict, coordinator_epoch: int, now_ms: int) -> bytes:
    """The same for all participants, which take it one after the other."""
    batch = build_marker(
        producer_id=verdict.producer_id,
        producer_epoch=verdict.producer_epoch,
        committed=verdict.committed,
        coordinator_epoch=coordinator_epoch,
        timestamp=now_ms,
    )
    return bytes(batch)


class Written:
    """A marker in a log, which others may not have yet."""

    def __init__(self, partition: Partition, end: int, *, needs_flush: bool) -> None:
        self._partition, self._end, self._needs_flush = partition, end, needs_flush
        self._tenure = partition.tenure
        self.was_committed = False

    @property
    def where(self) -> TopicPartition:
        return self._partition.topic_partition

    @property
    def is_lost(self) -> bool:
        """Another broker leads now, and may not have it."""
        return not self._partition.is_in_tenure(self._tenure)

    def is_committed(self) -> bool:
        log = self._partition.log
        self.was_committed = self.was_committed or (
            not self.is_lost
            and log.high_watermark >= self._end
            and (not self._needs_flush or log.recovery_point >= self._end)
        )
        return self.was_committed


class MarkerLogs:
    """The logs as those see them who end transactions. Belongs to the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: Partitions,
        groups: GroupCoordinator,
        waiters: Waiters,
        flusher: Flusher,
        clock: Clock,
    ) -> None:
        self._cluster, self._partitions, self._groups = cluster, partitions, groups
        self.waiters, self._flusher, self._clock = waiters, flusher, clock

    def exists(self, where: TopicPartition) -> bool:
        """Whether it is in the cluster, though perhaps not on this broker yet."""
        return self._cluster.image.partition(where) is not None

    def append(self, where: TopicPartition, verdict: Verdict, coordinator_epoch: int) -> Written:
        """Refused as an append is, and if the producer or the coordinator has been replaced."""
        partition = self._partitions.get(*where)
        partition.check_leader()
        if verdict.bumps_epoch:
            partition.log.producers.check_next_epoch(verdict.producer_id, verdict.producer_epoch)
        now_ms = self._clock.now_ms()
        batch = bytearray(marker(verdict, coordinator_epoch, now_ms))
        appended = partition.append(batch, read_header(batch), -1, now_ms, from_client=False)
        if where.topic == CONSUMER_OFFSETS:
            self._groups.runtime.end_transaction(
                where.partition, verdict.producer_id, committed=verdict.committed
            )
        self.waiters.changed(where)
        if appended.flush_due:
            flushed = self._flusher.request(partition.log)
            flushed.add_done_callback(lambda _: self.waiters.changed(where))
        return Written(partition, appended.last_offset + 1, needs_flush=appended.flush_due)

    def write(
        self,
        verdict: Verdict,
        participants: Collection[TopicPartition],
        coordinator: int,
        done: Callable[[], object],
    ) -> None:
        state = self._partitions.find(TRANSACTION_STATE, coordinator)
        if state is None or not state.leads:
            return  # whoever leads now will see to it
        round_ = Round(self, verdict, participants, state.leader_epoch)
        if round_.attempt():
            done()
        else:
            self._wait(round_, state, done)

    def _wait(self, round_: "Round", state: Partition, done: Callable[[], object]) -> None:
        epoch = state.leader_epoch

        def ended(finished: bool) -> None:  # noqa: FBT001  what a waiter ends with
            if finished:
                done()
            elif state.leads and state.leader_epoch == epoch:
                self._wait(round_, state, done)

        self.waiters.park(Parked(round_.participants, RETRY_MS, round_.attempt, bool), ended)


class Round:
    """One transaction's markers on their way to all of its participants."""

    def __init__(
        self,
        logs: MarkerLogs,
        verdict: Verdict,
        participants: Collection[TopicPartition],
        coordinator_epoch: int,
    ) -> None:
        self._logs, self._verdict, self._epoch = logs, verdict, coordinator_epoch
        self.participants = participants
        self._missing = set(participants)
        self._written: list[Written] = []

    def attempt(self) -> bool | None:
        """True once all have it for good; None: not yet."""
        lost = [each for each in self._written if each.is_lost and not each.was_committed]
        self._missing.update(each.where for each in lost)
        self._written = [each for each in self._written if each not in lost]
        for where in sorted(self._missing):
            try:
                self._written.append(self._logs.append(where, self._verdict, self._epoch))
            except InvalidProducerEpoch:
                pass  # a newer producer has ended this transaction there
            except (KafkaError, StorageError):
                if self._logs.exists(where):
                    continue  # it has no leader, too few replicas or no disk now: try again
            self._missing.discard(where)
        if self._missing or not all(each.is_committed() for each in self._written):
            return None
        return True
