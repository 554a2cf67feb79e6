"""One partition's log: where batches get their offsets, and where they are found again.

Every method is a plain call by the one owner, the event loop; only `Flush.run` may be called on
another thread. A failure of the disk takes the whole log directory offline.
"""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.log import lookup
from penstock.log.epochs import LeaderEpochs
from penstock.log.files import Files, LogFile
from penstock.log.flush import Flush
from penstock.log.log_dir import LogDir
from penstock.log.lookup import LogSlice
from penstock.log.producer_state import CompletedTxn, ProducerState
from penstock.log.replay import latest_state, marker_of, note_batch, replay, snapshot_offsets
from penstock.log.retention import Retention, SegmentInfo, deletable
from penstock.log.segment import MAX_RELATIVE_OFFSET, SNAPSHOT, IndexLimits, Segment, offset_path
from penstock.log.segments import Segments
from penstock.log.time_index import TimestampOffset
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import (
    BatchHeader,
    CorruptBatch,
    assign,
    batches,
    crc_matches,
    read_header,
    stamp_log_append_time,
)
from penstock.record.control import Marker
from penstock.record.record import records
from penstock.types import Buffer, TopicPartition

EPOCHS = "leader-epoch-checkpoint"


class OffsetOutOfRange(KafkaError):
    """An offset that the log does not have any more, or not yet."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, asked: int, start: int, end: int) -> None:
        super().__init__(f"offset {asked} is outside [{start}, {end})")
        self.asked, self.start, self.end = asked, start, end


class OffsetsOutOfOrder(KafkaError):
    """A follower was given batches that do not follow its log's end."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """What became of a batch; a duplicate has the offsets of the one it repeats."""

    first_offset: int
    last_offset: int
    log_append_time: int
    """-1 where records keep their create time."""
    log_start_offset: int
    duplicate: bool
    flush_due: bool
    """`flush.messages` is reached: acknowledge after a flush only."""


class LoadedState(msgspec.Struct):
    """What start-up found out about a log."""

    segments: Segments
    producers: ProducerState
    epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    end_offset: int
    changed: bool
    """New, or repaired: there is something to sync even if nothing is appended."""


class PartitionLog:
    """Offsets: log start <= last stable <= high watermark <= end; recovery point <= end."""

    def __init__(
        self,
        files: Files,
        directory: LogDir,
        topic_partition: TopicPartition,
        config: TopicConfig,
        state: LoadedState,
    ) -> None:
        self._files = files
        self.log_dir = directory
        self.topic_partition = topic_partition
        self.segments = state.segments
        self.producers = state.producers
        self.epochs = state.epochs
        self.log_start_offset = state.log_start_offset
        self.recovery_point = state.recovery_point
        self.end_offset = state.end_offset
        self.high_watermark = state.log_start_offset
        self.rolled = False
        """Since the last flush: a closed segment waits for it."""
        self.last_flush_ms = 0
        self._generation = 0
        self._epoch = state.epochs.latest
        self._epochs_changed = False
        self._names_changed = state.changed
        self._unsynced: list[LogFile] = []
        self.config = config

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._segment_bytes = config.segment_bytes
        self._log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.segments.limits = IndexLimits(config.index_interval_bytes, config.segment_index_bytes)

    @property
    def path(self) -> Path:
        return self.segments.directory

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """Before it no transaction is open: what read_committed consumers may see."""
        unstable = self.producers.first_unstable_offset
        high_watermark = self.high_watermark
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def append_as_leader(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
    ) -> Appended:
        """Give a checked batch the next offsets, in place, and write it.

        `header` is the batch's own, as `check_produced` returned it.
        """
        if self.log_dir.failure is not None:
            self.log_dir.check()
        marker = None
        if header.producer_id >= 0:
            if header.is_control:
                marker = self._checked_marker(batch, header)
            else:
                original = self.producers.check(header, from_client=from_client)
                if original is not None:
                    time = original.timestamp if self._log_append_time else -1
                    return self._appended(
                        original.base_offset, original.last_offset, time, duplicate=True
                    )
        first_offset = self.end_offset
        last_offset = first_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        if self._log_append_time:
            timestamp = now_ms
            stamp_log_append_time(batch, now_ms)
        try:
            segment = self._segment_for(first_offset, last_offset, len(batch), timestamp, now_ms)
            assign(batch, first_offset, leader_epoch)
            if leader_epoch != self._epoch:
                self.assign_epoch(leader_epoch, first_offset)
            segment.append(batch, last_offset, timestamp)
            self.end_offset = last_offset + 1
            if header.producer_id >= 0:
                self._note_producer(segment, read_header(batch), marker)
        except StorageError as error:
            self.fail(error)
            raise
        return self._appended(
            first_offset, last_offset, timestamp if self._log_append_time else -1, duplicate=False
        )

    def _appended(self, first: int, last: int, time: int, *, duplicate: bool) -> Appended:
        flush_due = self.end_offset - self.recovery_point >= self._config.flush_messages
        return Appended(first, last, time, self.log_start_offset, duplicate, flush_due)

    def append_as_follower(self, data: Buffer, now_ms: int) -> Appended | None:
        """Write fetched batches as the leader wrote them; a cut batch at the end is left out."""
        self.log_dir.check()
        view = memoryview(data)
        found = self._checked_batches(view)
        if not found:
            return None
        try:
            for start, end, run in self._runs(found, now_ms):
                self.segments.active.append_run(view[start:end], run)
                self.end_offset = run[-1].next_offset
                for header in run:
                    self._note_follower_batch(view, start, header)
                    start += header.size_bytes
        except StorageError as error:
            self.fail(error)
            raise
        return self._appended(
            found[0][1].base_offset, found[-1][1].last_offset, -1, duplicate=False
        )

    def _checked_batches(self, view: memoryview) -> list[tuple[int, BatchHeader]]:
        found = []
        next_offset = self.end_offset
        for position, header in batches(view):
            if not crc_matches(view, header, position):
                raise CorruptBatch(f"batch at offset {header.base_offset} does not match its CRC")
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise OffsetsOutOfOrder(
                    f"{self.topic_partition}: a batch begins at offset {header.base_offset}, "
                    f"the log ends at {next_offset}"
                )
            next_offset = header.next_offset
            found.append((position, header))
        return found

    def _runs(
        self, found: list[tuple[int, BatchHeader]], now_ms: int
    ) -> Iterator[tuple[int, int, list[BatchHeader]]]:
        """Start, end and headers of batches that go into one segment, which is active then."""
        run: list[BatchHeader] = []
        start = end = 0
        for position, header in found:
            size = position + header.size_bytes - start
            if run and not self._fits(self.segments.active, header.last_offset, size):
                yield start, end, run
                run, start = [], position
                size = header.size_bytes
            if not run:
                self._segment_for(
                    header.base_offset, header.last_offset, size, header.max_timestamp, now_ms
                )
            run.append(header)
            end = position + header.size_bytes
        yield start, end, run

    def _note_follower_batch(self, view: memoryview, at: int, header: BatchHeader) -> None:
        if header.leader_epoch >= 0 and header.leader_epoch != self._epoch:
            self.assign_epoch(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            marker = self._marker(view[at:], header) if header.is_control else None
            self._note_producer(self.segments.active, header, marker)

    def _marker(self, batch: Buffer, header: BatchHeader) -> Marker | None:
        return marker_of(list(records(batch, header, lookup.DECOMPRESSED_LIMIT_BYTES)))

    def _checked_marker(self, batch: Buffer, header: BatchHeader) -> Marker | None:
        marker = self._marker(batch, header)
        if marker is not None:
            self.producers.check_marker(
                header.producer_id, header.producer_epoch, marker.coordinator_epoch
            )
        return marker

    def _note_producer(self, segment: Segment, header: BatchHeader, marker: Marker | None) -> None:
        completed = note_batch(self.producers, header, marker)
        if completed is not None:
            index_aborted(segment, completed)

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Batches from `start_offset` on are of this leader epoch.

        Kept in memory until the next flush: what a crash loses, recovery reads off the batches.
        """
        if self.epochs.assign(leader_epoch, start_offset):
            self._epochs_changed = True
        self._epoch = leader_epoch

    def _fits(self, segment: Segment, last_offset: int, size: int) -> bool:
        return (
            segment.size_bytes + size <= self._segment_bytes
            and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
        )

    def _segment_for(
        self, first_offset: int, last_offset: int, size: int, timestamp: int, now_ms: int
    ) -> Segment:
        """The active segment, after a roll where one is due."""
        active = self.segments.active
        if (
            active.size_bytes
            and (
                active.index_is_full
                or not self._fits(active, last_offset, size)
                or self._is_old(active, timestamp, now_ms)
            )
        ) or last_offset - active.base_offset > MAX_RELATIVE_OFFSET:
            self.roll(now_ms, first_offset)
        return self.segments.active

    def _is_old(self, segment: Segment, timestamp: int, now_ms: int) -> bool:
        first = segment.first_timestamp
        age_ms = timestamp - first if first >= 0 else now_ms - segment.created_ms
        limit_ms = self._config.segment_ms
        return age_ms > limit_ms - self._jitter_ms(segment)

    def _jitter_ms(self, segment: Segment) -> int:
        # Spread over partitions, the same after each restart, and no dice.
        most = min(self._config.segment_jitter_ms, self._config.segment_ms)
        return crc32(f"{self.topic_partition}/{segment.base_offset}".encode()) % most if most else 0

    def roll(self, now_ms: int, base_offset: int = 0) -> None:
        """Begin a new segment at the end, or at a later `base_offset`."""
        base_offset = max(self.end_offset, base_offset)
        if base_offset == self.segments.active.base_offset:
            return
        self.snapshot_producers()
        self.segments.roll(base_offset, now_ms)
        self.rolled = self._names_changed = True

    def snapshot_producers(self) -> None:
        """Write the producer state down. Not synced: its CRC tells whether a crash tore it."""
        self.producers.map_end_offset = self.end_offset
        path = offset_path(self.path, self.end_offset, SNAPSHOT)
        file = self._files.open(path, create=True)
        file.truncate(0)
        file.append(self.producers.snapshot())
        self._unsynced.append(file)
        self._names_changed = True

    def read(
        self, offset: int, max_bytes: int, *, up_to: int, min_one_batch: bool = True
    ) -> LogSlice | None:
        """Batches from `offset` on and before `up_to`: the high watermark for consumers, the last
        stable offset for read_committed ones, the end for followers. None when there is none.
        """
        self.log_dir.check()
        if not self.log_start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.end_offset)
        if offset >= up_to:
            return None
        try:
            return lookup.slice_from(
                self.segments, offset, max_bytes, up_to, min_one_batch=min_one_batch
            )
        except StorageError as error:
            self.fail(error)
            raise

    def aborted_between(self, start: int, end: int) -> list[AbortedTxn]:
        return lookup.aborted_between(self.segments, start, end)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        self.log_dir.check()
        return lookup.offset_for_timestamp(self.segments, timestamp, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        self.log_dir.check()
        return lookup.offset_of_max_timestamp(self.segments)

    def offset_for_leader_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and its end offset; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.end_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Move it forward, never back and never past the end; says whether it moved."""
        if offset > self.end_offset:
            raise ValueError(f"high watermark {offset} is past the end {self.end_offset}")
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.replicated_to(offset)
        return True

    def set_high_watermark(self, offset: int) -> None:
        """Take a follower's or a checkpoint's word, as far as the log reaches."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.end_offset))
        self.producers.replicated_to(self.high_watermark)

    def maybe_increment_log_start(self, offset: int) -> bool:
        """Forget the records before `offset` (DeleteRecords, or the leader's log start)."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self._epochs_changed |= self.epochs.truncate_from_start(offset)
        self.producers.truncate_before(offset)
        return True

    def truncate_to(self, offset: int) -> bool:
        """Cut the log at `offset`. Call `LogStore.truncate`: it makes the recovery point last."""
        self.log_dir.check()
        if offset >= self.end_offset:
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, 0)
            return True
        try:
            self._remove_snapshots(after=offset)
            self.segments.truncate_to(offset)
            self._rewind(offset)
            state = latest_state(
                self._files, self.path, up_to=offset, log_start_offset=self.log_start_offset
            )
            replay(state, self.segments, offset)
        except StorageError as error:
            self.fail(error)
            raise
        self.producers = state
        self.log_start_offset = min(self.log_start_offset, offset)
        self.set_high_watermark(min(self.high_watermark, offset))
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Drop every record and begin anew at `offset`, as a follower too far behind does."""
        self.log_dir.check()
        try:
            self._remove_snapshots(after=-1)
            self.segments.restart_at(offset, now_ms)
        except StorageError as error:
            self.fail(error)
            raise
        self._rewind(offset)
        self.epochs = LeaderEpochs()
        self._epoch = None
        self.producers = ProducerState(offset)
        self.log_start_offset = offset
        self.set_high_watermark(offset)

    def _rewind(self, offset: int) -> None:
        self._generation += 1
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.truncate_from_end(offset)
        self._epoch = self.epochs.latest
        self._epochs_changed = True
        self._unsynced.clear()

    def _remove_snapshots(self, *, after: int) -> None:
        for offset in snapshot_offsets(self._files, self.path):
            if offset > after:
                self._files.remove(offset_path(self.path, offset, SNAPSHOT))

    def delete_old_segments(self, now_ms: int) -> int:
        """Apply retention; how many segments went."""
        self.log_dir.check()
        by_policy = "delete" in self._config.cleanup_policy
        bounds = Retention(
            self._config.retention_ms if by_policy else -1,
            self._config.retention_bytes if by_policy else -1,
            self.log_start_offset,
            self.high_watermark,
        )
        count = deletable(self._infos(), self.size_bytes, bounds, now_ms)
        if not count:
            return 0
        try:
            if count == len(self.segments):
                self.roll(now_ms)
            remaining = list(self.segments)[count]
            self.maybe_increment_log_start(max(remaining.base_offset, self.log_start_offset))
            self.segments.delete_first(count, now_ms + self._config.file_delete_delay_ms)
        except StorageError as error:
            self.fail(error)
            raise
        self._names_changed = True
        return count

    def swap_in(self, old: list[Segment], base_offset: int, now_ms: int) -> None:
        """Let a compacted segment, whose files end in `.swap`, take the place of `old`."""
        try:
            self.segments.swap_in(
                old,
                base_offset,
                now_ms=now_ms,
                remove_at_ms=now_ms + self._config.file_delete_delay_ms,
            )
        except StorageError as error:
            self.fail(error)
            raise
        self._names_changed = True

    def _infos(self) -> Iterator[SegmentInfo]:
        for segment in self.segments:
            end = self.segments.end_of(segment)
            yield SegmentInfo(
                segment.base_offset,
                self.end_offset if end is None else end,
                segment.size_bytes,
                segment.newest_ms,
                active=end is None,
            )

    def begin_flush(self) -> Flush:
        """What has to be synced so that everything up to the end survives a crash."""
        self.log_dir.check()
        try:
            handles = [
                handle
                for segment in self.segments.since(self.recovery_point)
                for handle in segment.to_sync()
            ]
        except StorageError as error:
            self.fail(error)
            raise
        flush = Flush(
            self._files,
            self.end_offset,
            self._generation,
            (*handles, *self._unsynced),
            (self.path, self.path.parent) if self._names_changed else (),
            (self.path / EPOCHS, self.epochs.encode()) if self._epochs_changed else None,
        )
        self._unsynced = []
        self._names_changed = self._epochs_changed = self.rolled = False
        return flush

    def flushed(self, flush: Flush) -> None:
        if flush.generation == self._generation:
            self.recovery_point = max(self.recovery_point, flush.end_offset)

    def flush(self) -> None:
        """Sync now, on this thread."""
        flush = self.begin_flush()
        try:
            flush.run()
        except StorageError as error:
            self.fail(error)
            raise
        self.flushed(flush)

    def fail(self, error: StorageError) -> None:
        self.log_dir.fail(error)

    def close(self) -> None:
        """Leave everything as a clean start expects it."""
        if self.recovery_point < self.end_offset or self._names_changed or self._epochs_changed:
            self.segments.active.close()
            self.snapshot_producers()
            self._epochs_changed = True
            self.flush()
        for segment in self.segments:
            segment.release()


def index_aborted(segment: Segment, txn: CompletedTxn) -> None:
    if not txn.committed:
        segment.append_aborted(
            AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
        )
