"""A consumer: records as typed values, commits by a mode, positions by offset or time.

    with Consumer(config, ["orders"], value=Json(Order), commit=AsyncCommit()) as consumer:
        for record in consumer:
            ...

A record counts as processed when the loop asks for the next one; only processed records are
committed. For asyncio there is `AsyncConsumer`. A consumer belongs to one thread at a time.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, Message, TopicPartition

from penstock.clock import Clock, SystemClock
from penstock.sdk.commit_mode import AutoCommit, CommitMode, CommitSchedule, CommitStep
from penstock.sdk.defaults import Config, consumer_config
from penstock.sdk.errors import ConsumerFailed, DeserializationFailed
from penstock.sdk.idle import POLL_S, Idle
from penstock.sdk.interceptor import ConsumerInterceptor, consumed_through, tell_committed
from penstock.sdk.reading import RecordReader, check_error, raw_record
from penstock.sdk.record import K, PartitionId, Record, V
from penstock.sdk.serde.protocol import Deserializer

logger = logging.getLogger(__name__)

ANSWER_S: Final = 30.0
BATCH: Final = 500
START_OF_LOG: Final = frozenset({"beginning", "earliest", "smallest"})
"""Values of `auto.offset.reset`, all of one meaning to librdkafka."""

OnRebalance: TypeAlias = Callable[[Sequence[PartitionId]], None]


class Consumer(Generic[K, V]):
    """`config` is librdkafka's, with `group.id`; without a deserializer, values are bytes."""

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] = (),
        *,
        key: Deserializer[K] | None = None,
        value: Deserializer[V] | None = None,
        commit: CommitMode | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._reader = RecordReader(key, value)
        self._chain = tuple(interceptors)
        self._schedule = CommitSchedule(commit or AutoCommit(), self._clock.monotonic_ms())
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._processed: dict[PartitionId, int] = {}
        """Next offset by partition, since the last commit."""
        self._unanswered: dict[PartitionId, int] = {}
        """Offsets in async commits not acknowledged yet, and in failed commits; the next commit
        that waits includes them.
        """
        self._commit_failed = False
        """Set when a commit failed: `batch` then polls before it commits again, because only
        polling completes a rebalance.
        """
        self._in_hand: dict[PartitionId, int] = {}
        """Next offsets after the last batch, which the next call of `batch` counts as processed."""
        self._pending: list[Message] = []
        """Messages fetched together with a poison record and not handed over yet."""
        self._batch: list[Record[K, V]] = []
        """The batch being iterated; `_at` is the index of its current record, `_ends` has the next
        offsets after the whole batch.
        """
        self._at = 0
        self._ends: dict[PartitionId, int] = {}
        self._left: list[Record[K, V]] = []
        """Records of a batch that the caller has not seen yet, because it left the loop early or
        was cancelled; `_left_ends` has their next offsets.
        """
        self._left_ends: dict[PartitionId, int] = {}
        self._left_error: BaseException | None = None
        """Error of a `batch` call whose caller was cancelled; the next call raises it. For a poison
        record, `_left_ends` has the offset after it.
        """
        self._revocations = 0
        self._sought_in_batch: set[PartitionId] = set()
        """Partitions sought or revoked during the iteration: the rest of them is skipped."""
        self._sought: dict[PartitionId, int] = {}
        """Offsets passed to `seek`, until a record of that partition is read."""
        self._closed = False
        self.has_joined = False
        """Whether the group has assigned partitions to this consumer, possibly none."""
        settings = self._settings(config)
        self._begins_at_start = settings["auto.offset.reset"] in START_OF_LOG
        self.client = confluent_kafka.Consumer(settings)
        """confluent-kafka's own consumer, for calls that this class does not wrap."""
        if topics:
            self.client.subscribe(
                list(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )

    def _settings(self, config: Config) -> dict[str, Any]:
        mode = self._schedule.mode
        ours: dict[str, Any] = {"enable.auto.commit": isinstance(mode, AutoCommit)}
        if isinstance(mode, AutoCommit):
            ours["auto.commit.interval.ms"] = mode.interval_ms
        return consumer_config({**config, **ours, "on_commit": self._committed})

    def __iter__(self) -> Iterator[Record[K, V]]:
        """Records until the consumer is closed."""
        return self.records()

    def records(self, idle_s: float | None = None) -> Iterator[Record[K, V]]:
        """Like iteration, but ends after `idle_s` without records, once the group is joined."""
        idle = Idle(idle_s)
        while not self._closed:
            batch = self.batch(BATCH, idle.timeout_s)
            if idle.is_over(batch, has_joined=self.has_joined):
                return
            yield from self.one_by_one(batch)

    def one_by_one(self, batch: list[Record[K, V]]) -> Iterator[Record[K, V]]:
        """Yields the batch that `batch` returned last; each record counts as processed when the
        next one is requested.
        """
        self._ends = self.take_back()
        self._batch = batch
        sought = self._sought_in_batch
        sought.clear()
        for self._at, record in enumerate(batch):
            if sought and _at(record) in sought:
                continue
            yield record
            if self._batch is not batch:
                return  # another loop took over the rest
        self._batch = []
        self.processed_to(self._ends)

    def batch(self, most: int = BATCH, timeout_s: float = POLL_S) -> list[Record[K, V]]:
        """Returns up to `most` records. The previous batch counts as processed from now on. If a
        loop was left early, its current record counts as processed too, and the records after it
        come next.

        A record that cannot be deserialized raises; the next call continues after it. If there is
        no next call, because the error ends the program, the record is not committed.
        """
        self._leave_loop()
        self._note_processed()
        self._raise_left_error()
        if self._commit_failed:
            self._commit_failed = False
        else:
            self._commit_by(self._schedule.next)
        if self._left:
            return self._left_over(most)
        messages = self._pending or self._fetched(most, timeout_s)
        self._pending = []
        records: list[Record[K, V]] = []
        read = self._reader.read
        for message in messages:
            error = message.error()
            if error is not None:
                at = messages.index(message)
                if records:  # return the records before it first
                    self._pending = messages[at:]
                    break
                self._pending = messages[at + 1 :]  # in case check_error raises
                check_error(error)
                self._pending = []
                continue
            try:
                records.append(read(message))
            except Exception as cause:
                at = messages.index(message)
                if records:  # return the records before it first
                    self._pending = messages[at:]
                    break
                failed = self._reader.failure(message, cause)
                self._pending = messages[at + 1 :]
                self._in_hand = {(failed.topic, failed.partition): failed.offset + 1}
                raise failed from cause
        if self._sought and records:
            read_again = {_at(each) for each in records}
            self._sought = {tp: at for tp, at in self._sought.items() if tp not in read_again}
        # Records that an interceptor filters out count as processed with the rest.
        self._in_hand = self._behind(records)
        return consumed_through(self._chain, records) if self._chain and records else records

    def _behind(self, records: list[Record[K, V]]) -> dict[PartitionId, int]:
        """Next offsets by partition after these records."""
        assigned = self.client.assignment() if records and not self._pending else []
        if not assigned or len(assigned) > len(records) // 4:
            return {_at(each): each.offset + 1 for each in records}
        # One `position` call costs less than a pass over all records.
        return {
            (each.topic, each.partition): each.offset
            for each in self.client.position(assigned)
            if each.offset >= 0 and (each.topic, each.partition) not in self._sought
        }

    def _fetched(self, most: int, timeout_s: float) -> list[Message]:
        revocations = self._revocations
        messages = fetched(self.client, most, timeout_s)
        if revocations == self._revocations:
            return messages
        # A rebalance happened during the fetch: another consumer may already own the partition.
        assigned = set(self.assignment)
        return [each for each in messages if each.error() or _at(raw_record(each)) in assigned]

    def _leave_loop(self) -> None:
        """Note what a loop that was left early has processed, and keep the rest of its batch."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        self._note_iterated(batch[: self._at + 1])
        rest = [each for each in batch[self._at + 1 :] if _at(each) not in self._sought_in_batch]
        if rest:
            self._left, self._left_ends = [*rest, *self._left], {**self._ends, **self._left_ends}
        else:
            self.processed_to(self._ends)

    def _left_over(self, most: int) -> list[Record[K, V]]:
        records, self._left = self._left[:most], self._left[most:]
        if self._left:
            self._in_hand = {_at(each): each.offset + 1 for each in records}
        else:
            self._in_hand, self._left_ends = self._left_ends, {}
        return records

    def unread(self, records: list[Record[K, V]]) -> None:
        """The caller never received the last batch: the next call of `batch` returns it again."""
        if not records:
            return  # records that an interceptor filtered out stay in hand
        self._left, self._left_ends = (
            [*records, *self._left],
            {**self.take_back(), **self._left_ends},
        )

    def unread_error(self, error: BaseException) -> None:
        """The caller never received this error of `batch`: the next call raises it again."""
        self._left_error = error
        self._left_ends = {**self.take_back(), **self._left_ends}

    def _raise_left_error(self) -> None:
        error, self._left_error = self._left_error, None
        if error is None:
            return
        if not self._left:
            self._in_hand, self._left_ends = self._left_ends, {}
        raise error

    def take_back(self) -> dict[PartitionId, int]:
        """Stop counting the batch in hand as processed, and return its next offsets; the caller
        reports progress by `processed` or `processed_to` instead.
        """
        ends, self._in_hand = self._in_hand, {}
        return ends

    def processed(self, record: Record[K, V]) -> None:
        """Record and predecessors in its partition may be committed."""
        self._processed[record.topic, record.partition] = record.offset + 1

    def processed_to(self, offsets: Mapping[PartitionId, int]) -> None:
        """The records before these offsets may be committed."""
        self._processed.update(offsets)

    def commit(self, *, wait: bool = True) -> None:
        """Commit all records handed over, including the current record or batch: the caller has
        processed them.
        """
        self._note_iterated(self._batch[: self._at + 1])
        self.processed_to(self._in_hand)
        self._commit(CommitStep.SYNC if wait else CommitStep.ASYNC)

    def commit_offsets(self, offsets: Mapping[PartitionId, int], *, wait: bool = True) -> None:
        """Commit these next offsets."""
        for each in offsets:
            self._unanswered.pop(each, None)
        self._send_commit(dict(offsets), wait=wait)

    def assign(self, offsets: Mapping[PartitionId, int | None]) -> None:
        """Read these partitions, without a group's assignment; None: from the committed offset."""
        self.has_joined = True
        self.client.assign(
            [
                TopicPartition(*each) if offset is None else TopicPartition(*each, offset)
                for each, offset in offsets.items()
            ]
        )

    @property
    def assignment(self) -> list[PartitionId]:
        return [(each.topic, each.partition) for each in self.client.assignment()]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._forget([(topic, partition)])
        self.client.seek(TopicPartition(topic, partition, offset))
        self._sought[topic, partition] = offset

    def seek_to_beginning(self, partitions: Sequence[PartitionId] | None = None) -> None:
        for topic, partition in self._chosen(partitions):
            self.seek(topic, partition, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Sequence[PartitionId] | None = None) -> None:
        for topic, partition in self._chosen(partitions):
            self.seek(topic, partition, OFFSET_END)

    def seek_to_time(self, at_ms: int, partitions: Sequence[PartitionId] | None = None) -> None:
        """Go to the first record at or after this time, or to the end if there is none."""
        asked = [TopicPartition(*each, at_ms) for each in self._chosen(partitions)]
        for each in self.client.offsets_for_times(asked, ANSWER_S):
            self.seek(each.topic, each.partition, each.offset)

    def seek_by(self, records: int, partitions: Sequence[PartitionId] | None = None) -> None:
        """Move forward, or back for a negative number, within the bounds of the log."""
        for topic, partition in self._chosen(partitions):
            low, high = self.client.get_watermark_offsets(
                TopicPartition(topic, partition), ANSWER_S
            )
            here = self.position(topic, partition)
            self.seek(topic, partition, min(max(here + records, low), high))

    def position(self, topic: str, partition: int) -> int:
        """Offset of the next record that the application sees.

        Before the first record it is the committed offset, or where `auto.offset.reset` begins if
        there is none.
        """
        if (topic, partition) not in self._sought_in_batch:
            for record in self._batch[self._at + 1 :]:
                if _at(record) == (topic, partition):
                    return record.offset
        poison = self._left_error
        if isinstance(poison, DeserializationFailed) and _at(poison) == (topic, partition):
            return poison.offset
        for record in self._left:
            if _at(record) == (topic, partition):
                return record.offset
        for each in self._pending:
            if (each.topic(), each.partition()) == (topic, partition):
                return each.offset() or 0
        if self._sought.get((topic, partition), -1) >= 0:
            return self._sought[topic, partition]
        asked = TopicPartition(topic, partition)
        found = self.client.position([asked])[0].offset
        if found < 0:
            found = self.client.committed([asked], ANSWER_S)[0].offset
        if found < 0:
            low, high = self.client.get_watermark_offsets(asked, ANSWER_S)
            return low if self._begins_at_start else high
        return found

    def pause(self, partitions: Sequence[PartitionId] | None = None) -> None:
        """Stop fetching from these partitions; the consumer stays a member of its group."""
        self.client.pause([TopicPartition(*each) for each in self._chosen(partitions)])

    def resume(self, partitions: Sequence[PartitionId] | None = None) -> None:
        self.client.resume([TopicPartition(*each) for each in self._chosen(partitions)])

    def close(self) -> None:
        """Commit what was processed, as the commit mode says, and leave the group."""
        if self._closed:
            return
        self._closed = True
        try:
            self._note_processed()
            self._commit_by(lambda _: self._schedule.last())
        finally:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.take_back()
        self.close()

    def _note_iterated(self, records: Sequence[Record[K, V]]) -> None:
        """These records of the batch are processed."""
        for record in records:
            at, behind = _at(record), record.offset + 1
            if at not in self._sought_in_batch and behind > self._processed.get(at, 0):
                self._processed[at] = behind

    def _note_processed(self) -> None:
        self._note_iterated(self._batch[: self._at])
        self.processed_to(self.take_back())

    def _commit_by(self, decided: Callable[[int], CommitStep]) -> None:
        if self._processed or self._unanswered:
            self._commit(decided(self._clock.monotonic_ms()))

    def _commit(self, step: CommitStep) -> None:
        if step in (CommitStep.SYNC, CommitStep.STORE):
            self._processed = {**self._unanswered, **self._processed}
            self._unanswered = {}
        if step is CommitStep.NOTHING or not self._processed:
            return
        offsets, self._processed = self._processed, {}
        if step is CommitStep.STORE:
            assigned = set(self.assignment)  # librdkafka refuses to store others
            kept = [TopicPartition(*tp, at) for tp, at in offsets.items() if tp in assigned]
            if kept:
                self.client.store_offsets(offsets=kept)
            return
        if step is CommitStep.ASYNC:
            self._unanswered.update(offsets)
        try:
            self._send_commit(offsets, wait=step is CommitStep.SYNC)
        except ConsumerFailed:
            self._unanswered = {**offsets, **self._unanswered}
            self._commit_failed = True
            raise

    def _send_commit(self, offsets: Mapping[PartitionId, int], *, wait: bool) -> None:
        asked = [TopicPartition(*each, offset) for each, offset in offsets.items()]
        try:
            if not wait:
                self.client.commit(offsets=asked, asynchronous=True)
                return
            for each in self.client.commit(offsets=asked, asynchronous=False):
                if each.error is not None:
                    raise ConsumerFailed(
                        f"the commit of {each.topic}-{each.partition} failed: {each.error}"
                    )
            tell_committed(self._chain, offsets)
        except KafkaException as error:
            raise ConsumerFailed(f"the commit failed: {error.args[0]}") from None

    def _committed(self, error: Any, partitions: list[TopicPartition]) -> None:
        if error is not None:
            logger.warning("a commit failed; the next one that waits has its offsets: %s", error)
            return
        done = {(each.topic, each.partition): each.offset for each in partitions if not each.error}
        self._unanswered = {tp: at for tp, at in self._unanswered.items() if done.get(tp, -1) != at}
        tell_committed(self._chain, done)

    def _chosen(self, partitions: Sequence[PartitionId] | None) -> Sequence[PartitionId]:
        return self.assignment if partitions is None else partitions

    def _forget(self, partitions: Sequence[PartitionId]) -> None:
        """Drop records that were fetched but not handed over: they are read again or unwanted."""
        gone = set(partitions)
        self._pending = [
            each for each in self._pending if (each.topic(), each.partition()) not in gone
        ]
        self._left = [each for each in self._left if _at(each) not in gone]
        self._note_iterated(self._batch[: self._at])
        self._sought_in_batch |= gone
        poison = self._left_error
        if isinstance(poison, DeserializationFailed) and _at(poison) in gone:
            self._left_error = None
        for each in gone:
            self._ends.pop(each, None)
            self._left_ends.pop(each, None)
            self._in_hand.pop(each, None)
            self._sought.pop(each, None)

    def _assigned(self, _: object, partitions: list[TopicPartition]) -> None:
        self.has_joined = True
        self._call(self._on_assign, partitions)

    def _revoked(self, _: object, partitions: list[TopicPartition]) -> None:
        self._call(self._on_revoke, partitions)
        try:
            self._commit_by(lambda _: self._schedule.last())
        except ConsumerFailed as error:
            logger.warning("before partitions are given up: %s", error)
        self._give_up(_ids(partitions))

    def _lost(self, _: object, partitions: list[TopicPartition]) -> None:
        self._give_up(_ids(partitions))
        self._call(self._on_lost or self._on_revoke, partitions)

    def _give_up(self, partitions: list[PartitionId]) -> None:
        self._revocations += 1
        self._forget(partitions)
        for each in partitions:
            # A later commit would set back the position of the new owner.
            self._processed.pop(each, None)
            self._unanswered.pop(each, None)

    def _call(self, callback: OnRebalance | None, partitions: list[TopicPartition]) -> None:
        if callback is None:
            return
        try:
            callback(_ids(partitions))
        except Exception:
            logger.exception("a rebalance callback failed")


def fetched(client: confluent_kafka.Consumer, most: int, timeout_s: float) -> list[Message]:
    """Returns the available messages, up to `most`, and waits only for the first; `consume` alone
    would wait for all.
    """
    first = client.poll(timeout_s)
    return [] if first is None else [first, *client.consume(most - 1, 0)] if most > 1 else [first]


def _at(record: Record[Any, Any] | DeserializationFailed) -> PartitionId:
    return record.topic, record.partition


def _ids(partitions: Sequence[TopicPartition]) -> list[PartitionId]:
    return [(each.topic, each.partition) for each in partitions]
