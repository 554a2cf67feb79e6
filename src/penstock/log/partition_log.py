"""One partition's log: assigns offsets to batches, and finds them again.

It belongs to the event loop; only `Flush.run` may be called on another thread. A failure of the
disk takes the whole log directory offline.
"""

from pathlib import Path
from typing import Final

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log import lookup
from penstock.log.files import Files, LogFile, finished_or_failed
from penstock.log.flush import Flush
from penstock.log.loaded_state import LoadedState
from penstock.log.log_dir import LogDir
from penstock.log.lookup import LogSlice, OffsetOutOfRange
from penstock.log.replay import aborted_between, checked_marker, index_aborted, note_batch
from penstock.log.segment import RollRules
from penstock.log.segment_indexes import IndexLimits
from penstock.log.snapshots import write_snapshot
from penstock.log.txn_index import AbortedTxn
from penstock.log.unflushed import Unflushed
from penstock.record.batch import BatchHeader, assign, read_header
from penstock.record.control import EndTransactionMarker
from penstock.record.stamp import stamp_log_append_time
from penstock.types import TopicPartition

SMALL_SNAPSHOT_BYTES: Final = 1 << 16
"""Producer snapshots up to this size are written at every roll."""


class Appended:
    """Where a batch was appended; a duplicate has the offsets of the original."""

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        *,
        duplicate: bool,
        flush_due: bool,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        """-1 where records keep their create time."""
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
        self.flush_due = flush_due
        """`flush.messages` is reached: acknowledge after a flush only."""


class PartitionLog:
    """Offsets: log start <= last stable <= high watermark <= end; recovery point <= end."""

    def __init__(
        self,
        files: Files,
        log_dir: LogDir,
        topic_partition: TopicPartition,
        config: TopicConfig,
        state: LoadedState,
    ) -> None:
        self.files = files
        self.log_dir = log_dir
        self.topic_partition = topic_partition
        self.segments = state.segments
        self.producers = state.producers
        self.epochs = state.epochs
        self.log_start_offset = state.log_start_offset
        self.recovery_point = state.recovery_point
        """Everything before this offset is on the disk; a crash can only affect what follows."""
        self.end_offset = state.end_offset
        self.high_watermark = state.log_start_offset
        self.last_flush_ms = 0
        """When `Upkeep` last requested a flush, by the monotonic clock."""
        self._loaded_end = -1 if state.changed else state.end_offset
        self.generation = 0
        """Counts truncations."""
        self.unverified_gaps = state.unverified_gaps
        """Where batches may have been lost, or an offset damaged; see `replication/follower.py`."""
        self.leader_epoch = state.epochs.latest
        self._unsaved_bytes = 0
        """Size of the segments closed since the last producer snapshot."""
        self.unflushed = Unflushed(
            changed=state.changed, is_urgent=state.recovery_point < state.end_offset
        )
        self.config = config

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.roll_rules = RollRules.of(str(self.topic_partition), config)
        self.segments.limits = IndexLimits.of(config)

    @property
    def path(self) -> Path:
        return self.segments.directory

    @property
    def is_gone(self) -> bool:
        """The log was deleted or moved to another log directory: do not use its files.

        Their removal would look like a failed disk to code that still holds the log.
        """
        return self.segments.home.is_gone

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """The end for read_committed consumers: no transaction is open before it."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        # The first records of an open transaction may be past retention.
        return min(max(unstable, self.log_start_offset), self.high_watermark)

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
        with self.log_dir:
            marker = None
            if header.producer_id >= 0:
                if header.is_control:
                    marker = checked_marker(self.producers, batch, header)
                else:
                    original = self.producers.check(header, from_client=from_client)
                    if original is not None:
                        return self._appended(
                            original.base_offset,
                            original.last_offset,
                            original.timestamp,  # as Kafka, whatever the timestamp type is
                            duplicate=True,
                        )
            first_offset = self.end_offset
            last_offset = first_offset + header.last_offset_delta
            timestamp = header.max_timestamp
            log_append_time = -1
            if self._log_append_time:
                timestamp = log_append_time = now_ms
                stamp_log_append_time(batch, now_ms)
            segment = self.segments.active
            if self.roll_rules.is_due(
                segment,
                last_offset=last_offset,
                size=len(batch),
                timestamp=timestamp,
                now_ms=now_ms,
            ):
                self.roll(now_ms)
                segment = self.segments.active
            assign(batch, first_offset, leader_epoch)
            if leader_epoch != self.leader_epoch:
                self.assign_epoch(leader_epoch, first_offset)
            aborts = marker is not None and not marker.committed
            aborted_file = segment.txn_index.open() if aborts else None
            segment.append(batch, last_offset, timestamp)
            self.end_offset = last_offset + 1
            if header.producer_id >= 0:
                self.note_producer(read_header(batch), marker, now_ms, aborted_file)
            return self._appended(first_offset, last_offset, log_append_time, duplicate=False)

    def _appended(self, first: int, last: int, time: int, *, duplicate: bool) -> Appended:
        return Appended(
            first, last, time, self.log_start_offset, duplicate=duplicate, flush_due=self.flush_due
        )

    @property
    def flush_due(self) -> bool:
        """Whether `flush.messages` requires a flush now."""
        return self.end_offset - self.recovery_point >= self._config.flush_messages

    def note_producer(
        self,
        header: BatchHeader,
        marker: EndTransactionMarker | None,
        now_ms: int,
        aborted_file: LogFile | None = None,
    ) -> None:
        """Update the producer state for a batch that is written.

        `aborted_file` is already open if the batch ends an aborted transaction. Opening it only now
        might fail, and the batch would be in the log without its index entry.
        """
        completed = note_batch(self.producers, header, marker, now_ms)
        if completed is not None:
            with finished_or_failed():
                index_aborted(self.segments.active, completed, aborted_file)

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Note that batches from `start_offset` on are of this leader epoch.

        It stays in memory until the next flush: what a crash loses, recovery reads from the
        batches.
        """
        self.unflushed.epochs_changed |= self.epochs.assign(leader_epoch, start_offset)
        self.leader_epoch = leader_epoch

    def roll(self, now_ms: int, base_offset: int = 0) -> None:
        """Begin a new segment at the end, or at a later `base_offset`."""
        base_offset = max(self.end_offset, base_offset)
        if base_offset != self.segments.active.base_offset:
            # Neither writing a snapshot nor doing without it costs more than the log itself: there
            # may be many more producers than records in a segment.
            self._unsaved_bytes += self.segments.active.size_bytes
            if self.producers.snapshot_bytes <= SMALL_SNAPSHOT_BYTES + self._unsaved_bytes:
                self._snapshot_producers(base_offset)
            self.segments.roll(base_offset, now_ms)
            self.unflushed.is_urgent = self.unflushed.names_changed = True

    def _snapshot_producers(self, offset: int) -> None:
        self.producers.map_end_offset = offset
        self.unflushed.add_file(write_snapshot(self.files, self.path, self.producers))
        self._unsaved_bytes = 0

    def read(
        self, offset: int, max_bytes: int, *, up_to: int, min_one_batch: bool = True
    ) -> LogSlice | None:
        """Batches from `offset` on and before `up_to`: the high watermark for consumers, the last
        stable offset for read_committed ones, the end for followers. None when there is none.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.end_offset)
        if offset >= up_to:
            return None
        with self.log_dir:
            return lookup.slice_from(
                self.segments,
                offset,
                max_bytes,
                None if up_to >= self.end_offset else up_to,
                min_one_batch=min_one_batch,
            )

    def aborted_in(self, start: int, found: LogSlice, up_to: int) -> list[AbortedTxn]:
        """Aborted transactions with records in a slice read from `start` on.

        The range ends with the slice, not at the last stable offset: otherwise a consumer that
        catches up would get all later ones with every fetch.
        """
        with self.log_dir:
            end = lookup.end_of_slice(self.segments, start, found, up_to)
        return self.aborted_between(start, end)

    def aborted_between(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions with records in `[start, end)`, for a read_committed fetch."""
        with self.log_dir:
            return aborted_between(self.files, self.segments, start, end)

    def offset_for_leader_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and its end offset; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.end_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Move it forward, never back and never past the end; returns whether it moved."""
        if offset > self.end_offset:
            raise ValueError(f"high watermark {offset} is past the end {self.end_offset}")
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers.first_unstable_offset is not None:
            self.producers.replicated_to(offset)
        return True

    def set_high_watermark(self, offset: int) -> None:
        """Set it to a leader's or a checkpoint's value, within the log."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.end_offset))
        self.producers.replicated_to(self.high_watermark)

    def maybe_increment_log_start(self, offset: int) -> bool:
        """Forget the records before `offset` (DeleteRecords, or the leader's log start)."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.unflushed.epochs_changed |= self.epochs.truncate_from_start(offset)
        self.producers.truncate_before(offset)
        return True

    def is_flush_due(self, monotonic_ms: int) -> bool:
        """Whether closed segments or recovered data wait, or records have waited for `flush.ms`."""
        return self.unflushed.is_urgent or (
            self.recovery_point < self.end_offset
            and monotonic_ms - self.last_flush_ms >= self._config.flush_ms
        )

    def sync_later(self, name: str) -> None:
        """Sync a file beside the segments with the next flush."""
        self.unflushed.add_file(name)

    def begin_flush(self) -> Flush:
        """The flush after which everything up to the end survives a crash."""
        with self.log_dir:
            unflushed = [] if self.is_gone else self.segments.since(self.recovery_point)
            return self.unflushed.begin_flush(
                self.files,
                self.segments.home,
                unflushed,
                self.epochs,
                end_offset=self.end_offset,
                generation=self.generation,
            )

    def flushed(self, flush: Flush) -> None:
        """Note that `flush` has run. Another recovery has to find unverified gaps again."""
        if flush.generation == self.generation:
            self.recovery_point = max(self.recovery_point, self.verified(flush.end_offset))

    def verified(self, offset: int) -> int:
        """The offset, or the start of the first unverified gap before it."""
        return min([offset, *self.unverified_gaps[:1]])

    def flush(self) -> None:
        """Sync now, on this thread."""
        self._run(self.begin_flush())

    def _run(self, flush: Flush) -> None:
        with self.log_dir, finished_or_failed():
            flush.run()
        self.flushed(flush)

    def fail(self, error: StorageError) -> None:
        """Note that a flush failed. If it only lacked a descriptor, the next one syncs it all."""
        self.log_dir.fail(error)
        self.unflushed.give_back()

    def begin_close(self) -> Flush | None:
        """Prepare for a clean stop, which is complete once the flush has run."""
        is_as_loaded = self.end_offset == self._loaded_end and self.generation == 0
        if is_as_loaded and self.unflushed.is_empty:
            return None
        with self.log_dir:
            self.segments.active.close()
            self._snapshot_producers(self.end_offset)
        return self.begin_flush()

    def close(self) -> None:
        """Close it now, on this thread."""
        flush = self.begin_close()
        if flush is not None:
            self._run(flush)
        self.release()

    def release(self) -> None:
        """Close the files until they are needed again."""
        for segment in self.segments:
            segment.release()
