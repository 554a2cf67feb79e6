"""The parallel consumer: one fetching thread, a pool of workers, progress out of order.

    consumer = ParallelConsumer(config, ["orders"], ThreadPool(handle, 100), order=Order.KEY)
    consumer.run()  # until `stop()`

- The fetching thread polls all the time: slow work causes no rebalance.
- A commit has the first unfinished offset, and which records after it are finished: after a crash
  at most `redo_at_most` records are handled again, however long one of them hangs.
- At most `most_buffered` records are in memory. Partitions that fill the buffer are paused, and
  their records beyond a fair share are dropped and read again later, so that the others go on.
"""

import heapq
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeAlias

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.clock import Clock, SystemClock
from penstock.counted import counted
from penstock.sdk.consumer import fetched
from penstock.sdk.defaults import Config
from penstock.sdk.delivery import Delivery
from penstock.sdk.errors import (
    ConsumerFailed,
    HandlerFailed,
    RecordTooLarge,
    SdkError,
    SendFailed,
)
from penstock.sdk.failure import Tries
from penstock.sdk.interceptor import ConsumerInterceptor, consumed_through
from penstock.sdk.parallel.commits import AssignedPartition, ProgressCommits
from penstock.sdk.parallel.overflow import OverflowTopic
from penstock.sdk.parallel.pool import Pool
from penstock.sdk.parallel.progress import LaneProgress
from penstock.sdk.parallel.work import Order, Work, lane_of
from penstock.sdk.reading import RecordReader, check_error, raw_record
from penstock.sdk.record import K, PartitionId, Record, V
from penstock.sdk.serde.protocol import Deserializer

logger = logging.getLogger(__name__)

IDLE_S: Final = 0.1
BUSY_S: Final = 0.005
REDO: Final = 1_000
FULL_MS: Final = 500
"""A buffer that stays full for longer pauses partitions, so that polling goes on."""
COMMITTED_AHEAD: Final = 100
"""With `commit_first`, the most records that can be lost at once."""
SKIP: Final = 5_000
"""Runs of at least this many finished offsets are skipped by a seek, shorter ones by reading on."""

REMOVED: Final = (
    "the group has removed this member, which sent no heartbeat within session.timeout.ms; the "
    "next owner of its partitions handles again the records finished since their last commit"
)

REBALANCING: Final = {
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001 - librdkafka's name
}
"""Errors of a commit during a rebalance."""

RawRecord: TypeAlias = Record[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Again:
    """Handle the record again after a delay; records behind it in its lane wait."""

    delay_ms: int
    is_nack: bool = False
    """The handler gave the record back by `nack`; it has not failed."""


OnFailure: TypeAlias = Callable[[RawRecord, BaseException, Tries], Delivery | Again]
"""Returns the delivery to another topic, or the delay before a retry. An exception that it raises
ends the consumer.
"""


def raise_failure(record: RawRecord, error: BaseException, _tries: Tries) -> Delivery | Again:
    """Without retries and dead letters a failure ends the consumer; the record is not committed."""
    raise HandlerFailed(record.topic, record.partition, record.offset, error) from error


class ParallelConsumer(Generic[K, V]):
    """`run` belongs to one thread; `stop` may be called from any other."""

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        pool: Pool,
        *,
        key: Deserializer[K] | None = None,
        value: Deserializer[V] | None = None,
        order: Order = Order.KEY,
        on_failure: OnFailure = raise_failure,
        commit_first: bool = False,
        most_buffered: int | None = None,
        redo_at_most: int | None = None,
        drain_s: float = 10.0,
        max_record_bytes: int | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        overflow_topic: str = "penstock-progress",
        clock: Clock | None = None,
    ) -> None:
        redo_at_most = max(REDO, 2 * pool.size) if redo_at_most is None else redo_at_most
        if redo_at_most <= pool.size:
            raise SdkError(f"redo_at_most={redo_at_most} must be above the workers ({pool.size})")
        self._pool, self._topics, self._on_failure = pool, list(topics), on_failure
        self._commit_first, self._max_record_bytes = commit_first, max_record_bytes
        self._most_buffered = most_buffered or (
            COMMITTED_AHEAD if commit_first else max(1_000, 10 * pool.size)
        )
        self._redo_at_most, self._drain_s = redo_at_most, drain_s
        self._clock = clock or SystemClock()
        self._reader = RecordReader(key, value)
        self._work: Work[RawRecord] = Work(lane_of(order))
        self._chain = tuple(interceptors)
        self._later: list[tuple[int, int, RawRecord, AssignedPartition, Tries]] = []
        """A heap of retries: due time, a number that breaks ties, and the record with its state."""
        self._changed = threading.Condition()
        """Guards what workers change: work, progress, retries, counts."""
        self._numbers = 0
        self._paused: set[PartitionId] = set()
        self._full_since_ms: int | None = None
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._commits = ProgressCommits(
            config,
            OverflowTopic(config, overflow_topic),
            self._changed,
            self._clock,
            commit_after=redo_at_most // 4,
            on_answer=self._pump,
            interceptors=self._chain,
        )
        self._partitions = self._commits.partitions

    @property
    def client(self) -> confluent_kafka.Consumer:
        return self._commits.client

    def run(self) -> None:
        """Runs until `stop`, or until a record fails for good; then raises that error."""
        self.client.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        try:
            while not self._stopping.is_set() and self._failure is None:
                self._turn()
            self._drain(list(self._partitions))
        finally:
            self.close()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Let what is in progress finish, commit, and make `run` return."""
        self._stopping.set()

    def close(self) -> None:
        """Called at the end of `run`; call it directly only if `run` is not called."""
        self._pool.close()
        self.client.close()
        self._commits.close()

    def _turn(self) -> None:
        with self._changed:
            buffered = self._buffered
        if self._is_briefly_full(buffered):
            self._wait_for_room()
            return
        self._tend_pause(buffered)
        room = min(500, max(1, self._most_buffered - buffered))
        messages = fetched(self.client, room, BUSY_S if buffered else IDLE_S)
        received = []
        for message in messages:
            error = message.error()
            if error is None:
                received.append(raw_record(message))
            else:
                check_error(error)
        if received:
            self._receive(received)
        with self._changed:
            self._pump()
        self._commits.commit_if_due()

    def _receive(self, records: list[RawRecord]) -> None:
        ahead: dict[PartitionId, int] = {}
        taken: list[RawRecord] = []
        with self._changed:
            for record in records:
                at = record.topic, record.partition
                partition = self._partitions.get(at)
                if partition is None or record.offset < ahead.get(at, 0):
                    continue
                if partition.progress.is_behind(record.offset):
                    taken = [each for each in taken if (each.topic, each.partition) != at]
                    partition = self._begun_anew(at, record.offset)
                if partition.progress.start(record.offset):
                    taken.append(record)
                else:
                    beyond = partition.progress.next_unfinished(record.offset)
                    if beyond - record.offset >= SKIP:
                        ahead[at] = beyond
        if self._commit_first:
            again = self._committed_first(taken)
            if again:  # the commit was refused: handle none of them now
                ahead, taken = ahead | again, []
        with self._changed:
            for record in taken:
                self._work.add(record)
        for (topic, number), offset in ahead.items():
            self.client.seek(TopicPartition(topic, number, offset))

    def _committed_first(self, records: list[RawRecord]) -> dict[PartitionId, int]:
        """Commits the records before they are handled; if that is refused, returns the offsets to
        read again from.

        A rebalance may refuse it: then the records are read again here, or by the partition's new
        owner.
        """
        before: dict[PartitionId, LaneProgress] = {}
        with self._changed:
            for record in records:
                partition = self._partitions[_at(record)]
                if _at(record) not in before:
                    before[_at(record)] = LaneProgress(record.offset, partition.progress.pages())
                partition.progress.finish(record.offset)
                partition.is_changed = True
        refused = self._commits.commit(wait=True)
        if refused is None:
            return {}
        if refused.code() not in REBALANCING:
            self._failure = ConsumerFailed(f"records are not handled: {refused}")
        with self._changed:
            for at, progress in before.items():
                self._partitions[at] = AssignedPartition(progress, None)
        return {_at(each): each.offset for each in reversed(records)}

    def _begun_anew(self, at: PartitionId, offset: int) -> AssignedPartition:
        """The log was truncated or recreated: finished offsets say nothing about new records."""
        logger.warning("%s-%d goes on at %d, behind which it had been before", *at, offset)
        self._drop([at])
        partition = self._partitions[at] = AssignedPartition(LaneProgress(offset), None)
        return partition

    def _is_briefly_full(self, buffered: int) -> bool:
        """Whether polling can wait a little, because the buffer filled up only recently. A pause
        would discard what librdkafka has prefetched.
        """
        now_ms = self._clock.monotonic_ms()
        if buffered < self._most_buffered:
            self._full_since_ms = None
            return False
        if self._full_since_ms is None:
            self._full_since_ms = now_ms
        return now_ms - self._full_since_ms < FULL_MS

    def _wait_for_room(self) -> None:
        enough = self._most_buffered - min(500, self._most_buffered // 4)
        with self._changed:
            self._changed.wait_for(lambda: self._buffered <= enough, BUSY_S)
            self._pump()
        # Wait for the response: that of an async commit would arrive only by polling.
        self._commits.commit_if_due(wait=True)

    def _tend_pause(self, buffered: int) -> None:
        if buffered >= self._most_buffered:
            self._pause_those_that_fill()
        elif self._paused:
            with self._changed:
                go_on = [e for e in self._paused if self._buffered_of(e) <= self._share // 2]
            if go_on:
                self._paused.difference_update(go_on)
                self.client.resume([TopicPartition(*each) for each in go_on])

    def _pause_those_that_fill(self) -> None:
        """Pause partitions that use up their share, so that the others have room: a hanging record
        holds up only its own partition.
        """
        shed: dict[PartitionId, int] = {}
        with self._changed:
            full = {each for each in self._partitions if self._buffered_of(each) >= self._share}
            if not self._commit_first:  # else the waiting records are already committed
                for each in full:
                    start = self._work.shed(each, self._share)
                    if start is not None:
                        self._partitions[each].progress.give_back(start)
                        shed[each] = start
            if self._buffered >= self._most_buffered:  # the rest is in progress or committed
                full = set(self._partitions)
        new = full - self._paused
        if new:
            self._paused |= new
            self.client.pause([TopicPartition(*each) for each in new])
        for each, start in shed.items():
            self.client.seek(TopicPartition(*each, start))

    # The methods below run under the lock, on any thread.

    @property
    def _buffered(self) -> int:
        return self._work.waiting + self._work.in_progress

    def _buffered_of(self, partition: PartitionId) -> int:
        return self._work.waiting_of([partition]) + self._work.in_progress_of([partition])

    @property
    def _share(self) -> int:
        """The fair share of a partition in a full buffer."""
        return max(1, self._most_buffered // max(1, len(self._partitions)))

    def _pump(self) -> None:
        """Hand out records while workers are free and `redo_at_most` permits.

        A record that waits for a retry does not count until it is due: it is not finished, so a
        crash repeats no finished work of it.
        """
        while (
            self._failure is None
            and (self._commit_first or not self._stopping.is_set())
            and self._running < self._pool.size
            and self._commits.unacknowledged + self._running < self._redo_at_most
        ):
            found = self._next()
            if found is None:
                return
            self._submit(*found)

    @property
    def _running(self) -> int:
        return self._work.in_progress - len(self._later)

    def _submit(self, raw: RawRecord, partition: AssignedPartition, tries: Tries) -> None:
        try:
            self._check_size(raw)
            record = self._reader.read(raw.message)
        except RecordTooLarge as error:
            self._failed(raw, partition, tries, error)
            return
        except Exception as error:  # noqa: BLE001 - the user's deserializer
            failure = self._reader.failure(raw.message, error)
            self._failed(raw, partition, tries, failure)
            return
        if self._chain:
            passed = consumed_through(self._chain, [record])
            if not passed:  # filtered out: counts as processed, as in a plain consumer
                self._finish(raw, partition)
                return
            record = passed[0]
        self._pool.submit(record, partial(self._done, raw, partition, tries))

    def _check_size(self, raw: RawRecord) -> None:
        most_bytes = self._max_record_bytes
        size_bytes = len(raw.value or b"") + len(raw.key or b"")
        if most_bytes is not None and size_bytes > most_bytes:
            raise RecordTooLarge(size_bytes, most_bytes)

    def _done(
        self,
        raw: RawRecord,
        partition: AssignedPartition,
        tries: Tries,
        error: BaseException | None,
    ) -> None:
        with self._changed:
            if error is None:
                self._finish(raw, partition)
            else:
                self._failed(raw, partition, tries, error)
            self._pump()
            self._changed.notify_all()

    def _failed(
        self, raw: RawRecord, partition: AssignedPartition, tries: Tries, error: BaseException
    ) -> None:
        if not self._commit_first and self._partitions.get(_at(raw)) is not partition:
            self._work.done(raw)  # outlived the drain: the partition's new owner handles it
            return
        try:
            outcome = self._on_failure(raw, error, tries)
        except Exception as failure:  # noqa: BLE001 - raised by `run`
            if self._commit_first:
                logger.error("%s-%d at %d is lost: %s", *raw.id, error)
                self._finish(raw, partition)
            else:
                self._end(raw, failure)
            return
        if isinstance(outcome, Again):
            self._numbers += 1
            due_ms = self._clock.monotonic_ms() + outcome.delay_ms
            after = tries.after(is_nack=outcome.is_nack)
            heapq.heappush(self._later, (due_ms, self._numbers, raw, partition, after))
        else:
            outcome.when_done(partial(self._redirected, raw, partition, outcome))

    def _redirected(self, raw: RawRecord, partition: AssignedPartition, delivery: Delivery) -> None:
        """Called when the record is written to another topic, or could not be."""
        with self._changed:
            try:
                delivery.result(0)
            except SendFailed as error:
                self._end(raw, error)
            else:
                self._finish(raw, partition)
                self._pump()
            self._changed.notify_all()

    def _end(self, raw: RawRecord, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self._work.done(raw)

    def _finish(self, raw: RawRecord, partition: AssignedPartition) -> None:
        self._work.done(raw)
        if not self._commit_first:
            partition.progress.finish(raw.offset)
            partition.is_changed = True
            self._commits.fresh += 1

    def _next(self) -> tuple[RawRecord, AssignedPartition, Tries] | None:
        """The record to handle now: a due retry, or else a new record."""
        if self._later and self._later[0][0] <= self._clock.monotonic_ms():
            return heapq.heappop(self._later)[2:]
        raw = self._work.next()
        return None if raw is None else (raw, self._partitions[_at(raw)], Tries())

    # The methods below run on the fetching thread, without the lock.

    def _assigned(self, _: object, partitions: list[TopicPartition]) -> None:
        if self._stopping.is_set() or self._failure is not None:
            return  # nothing more is handled, and a closing client would not answer
        try:
            self._commits.load(partitions)
        except (KafkaException, SdkError) as error:
            self._failure = error

    def _revoked(self, _: object, partitions: list[TopicPartition]) -> None:
        self._unpause(partitions)
        self._drain([(each.topic, each.partition) for each in partitions])

    def _lost(self, _: object, partitions: list[TopicPartition]) -> None:
        self._unpause(partitions)
        lost = [(each.topic, each.partition) for each in partitions]
        logger.warning("%s: %s", REMOVED, counted(len(lost), "partition"))
        with self._changed:
            self._forget(lost)

    def _unpause(self, partitions: list[TopicPartition]) -> None:
        """A pause outlives the assignment in librdkafka: the next one would get no records."""
        self._paused -= {(each.topic, each.partition) for each in partitions}
        self.client.resume(partitions)

    def _drain(self, partitions: list[PartitionId]) -> None:
        """Wait for records in progress, commit, and forget the partitions."""
        ends_s = time.monotonic() + self._drain_s
        with self._changed:
            if not self._commit_first:
                self._drop(partitions)
            while self._failure is None and self._left_of(partitions):
                left_s = ends_s - time.monotonic()
                if left_s <= 0:
                    break
                if self._commit_first:  # waiting records are committed: only we can handle them
                    self._give_up_late(partitions, left_s)
                    self._pump()
                self._changed.wait(min(left_s, IDLE_S))
        self._commits.commit(wait=True)
        with self._changed:
            self._forget(partitions)

    def _left_of(self, partitions: list[PartitionId]) -> int:
        """The number of records still to finish here. Records that wait for a retry count only with
        `commit_first`, because they are already committed.
        """
        in_progress = self._work.in_progress_of(partitions)
        if self._commit_first:
            return in_progress + self._work.waiting_of(partitions)
        gone = set(partitions)
        return in_progress - sum(_at(item[2]) in gone for item in self._later)

    def _give_up_late(self, partitions: list[PartitionId], left_s: float) -> None:
        """Give up retries due only after the drain, so that records behind them are handled."""
        gone, end_ms = set(partitions), self._clock.monotonic_ms() + left_s * 1000
        lost = self._drop_later(lambda raw, due_ms: _at(raw) in gone and due_ms > end_ms)
        if lost:
            logger.error("lost %s that waited for a retry", counted(lost, "record"))

    def _forget(self, partitions: list[PartitionId]) -> None:
        self._drop(partitions)
        for each in partitions:
            self._partitions.pop(each, None)

    def _drop(self, partitions: list[PartitionId]) -> None:
        """Drop records that wait for a worker or for a retry."""
        waiting = self._work.waiting
        self._work.drop(partitions)
        gone = set(partitions)
        held = self._drop_later(lambda raw, _: _at(raw) in gone)
        if self._commit_first and (lost := waiting - self._work.waiting + held):
            logger.error("lost %s before handling", counted(lost, "record"))

    def _drop_later(self, is_gone: Callable[[RawRecord, int], bool]) -> int:
        """Drop the matching records that wait for a retry; returns their number."""
        given_up = [item for item in self._later if is_gone(item[2], item[0])]
        if given_up:
            self._later = [item for item in self._later if not is_gone(item[2], item[0])]
            heapq.heapify(self._later)
        for item in given_up:
            self._work.done(item[2])
        return len(given_up)


def _at(record: RawRecord) -> PartitionId:
    return record.topic, record.partition
