"""Cleans one log: reads its segments twice, and writes new ones beside them.

The first pass learns the newest offset of each key in the dirty part, until memory is full; the
second reads the log from its start and keeps the newest record of each key. Existing files do
not change: the broker swaps the new ones in, or drops them.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.errors import KafkaError, StorageError
from penstock.log.compaction.cleaned_segment import CleanedSegment
from penstock.log.compaction.grouping import SegmentSizes, grouped
from penstock.log.compaction.job import CleanedGroup, CleaningJob, Finished, SegmentSize
from penstock.log.compaction.offset_map import OffsetMap
from penstock.log.compaction.pace import Pace
from penstock.log.compaction.reading import whole_batches
from penstock.log.compaction.rewrite import BatchRetention, CleaningRound, rewritten
from penstock.log.compaction.spans import spans
from penstock.log.compaction.transactions import CleanedTransactions
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.log.segment_files import CLEANED, INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_path
from penstock.log.segment_indexes import IndexLimits
from penstock.log.txn_index import ENTRY_BYTES, AbortedTxn, decode_aborted
from penstock.record.batch import BatchHeader, payload, read_header
from penstock.record.control import EndTransactionMarker, read_marker
from penstock.record.record import records
from penstock.types import Buffer


def clean(files: Files, job: CleaningJob) -> Iterator[CleanedGroup | Finished]:
    """Each group of segments as soon as its replacement is on the disk, then the end."""
    yield from _Cleaning(files, job).run()


class _Cleaning:
    """One job, with the state that both passes share."""

    def __init__(self, files: Files, job: CleaningJob) -> None:
        self._files, self._job = files, job
        self._directory = Path(job.directory)
        bases = [each.base_offset for each in job.segments]
        self._ends = dict(zip(bases, [*bases[1:], job.first_uncleanable], strict=True))
        """The base offset of the next segment, by base offset."""
        self._aborted = self._aborted_transactions()
        self._producers = {each.producer_id: each for each in job.producers}
        self._read_bytes = 0
        self._pace = Pace(job.io_bytes_per_second)

    def run(self) -> Iterator[CleanedGroup | Finished]:
        job = self._job
        self._remove_leftovers()
        offsets = self._offset_map()
        cleaned_to = offsets.latest_offset + 1
        this = CleaningRound(offsets, job.now_ms, job.delete_retention_ms, job.max_records_bytes)
        touched = [each for each in self._segment_files() if each.segment.base_offset < cleaned_to]
        transactions = CleanedTransactions(self._aborted, job.segments[0].base_offset)
        written_bytes = 0
        for group in grouped(touched, job.segment_bytes, job.segment_index_bytes):
            segments = [each.segment for each in group]
            done = self._clean_group(segments, this, transactions, cleaned_to)
            written_bytes += done.size_bytes
            yield done
        yield Finished(cleaned_to, self._read_bytes, written_bytes)

    def _remove_leftovers(self) -> None:
        """Files of a cleaning that was stopped. Beside them a restart would take the replacement of
        a later segment for unfinished, and drop it after what it replaces.
        """
        for name in self._files.names(self._directory):
            if name.endswith(CLEANED):
                self._files.remove(self._directory / name)

    def _offset_map(self) -> OffsetMap:
        """The newest offset of each key from the first dirty one on, as far as memory reaches."""
        job = self._job
        offsets = OffsetMap(job.dedupe_buffer_bytes)
        offsets.latest_offset = job.first_dirty - 1
        transactions = CleanedTransactions(self._aborted, job.first_dirty)
        for each in self._segment_files():
            if each.next_base_offset <= job.first_dirty:
                continue
            for batch, header in self._batches(each.segment):
                if header.last_offset < job.first_dirty:
                    continue
                if header.is_control:
                    transactions.ends_nothing(header, self._marker(batch, header))
                elif not transactions.is_aborted(header) and not self._map(batch, header, offsets):
                    return offsets
                offsets.latest_offset = header.last_offset
            # Earlier cleanings may have removed offsets after the last batch.
            offsets.latest_offset = each.next_base_offset - 1
        return offsets

    def _map(self, batch: Buffer, header: BatchHeader, offsets: OffsetMap) -> bool:
        """Add the batch's keys to the map; False when the map is full."""
        data = payload(batch, header, self._job.max_records_bytes)
        for span in spans(data, header.record_count):
            offset = header.base_offset + span.offset_delta
            if (
                span.key is not None
                and offset >= self._job.first_dirty
                and not offsets.put(span.key, offset)
            ):
                return False
        return True

    def _clean_group(
        self,
        segments: list[SegmentSize],
        this: CleaningRound,
        transactions: CleanedTransactions,
        cleaned_to: int,
    ) -> CleanedGroup:
        job = self._job
        cleaned = CleanedSegment(
            self._files,
            self._directory,
            segments[0].base_offset,
            limits=IndexLimits(job.index_interval_bytes, job.segment_index_bytes),
            io_buffer_bytes=job.io_buffer_bytes,
        )
        transactions.retained = []
        try:
            for segment in segments:
                for batch, header in self._batches(segment):
                    retention = self._retention(batch, header, transactions, cleaned_to)
                    kept = rewritten(batch, header, retention, this)
                    if kept is None:
                        continue
                    cleaned.append(kept, header if kept is batch else read_header(kept))
                    self._pace.passed(len(kept))
            cleaned.finish(transactions.retained)
        except (StorageError, KafkaError):
            with suppress(StorageError):  # the first error is the one to report
                cleaned.discard()
            raise
        return CleanedGroup(segments, cleaned.size_bytes, job.generation)

    def _retention(
        self,
        batch: Buffer,
        header: BatchHeader,
        transactions: CleanedTransactions,
        cleaned_to: int,
    ) -> BatchRetention:
        if header.producer_id < 0 and header.next_offset != cleaned_to:
            return _ORDINARY
        stays_empty = header.next_offset == cleaned_to or self._is_last_of_producer(header)
        if not header.is_control:
            return BatchRetention(transactions.is_aborted(header), stays_empty)
        ends_nothing = transactions.ends_nothing(header, self._marker(batch, header))
        horizon = header.delete_horizon_ms
        is_past = horizon is not None and horizon <= self._job.now_ms
        return BatchRetention(ends_nothing and is_past, stays_empty, ends_nothing)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset is None:
            return header.is_control and header.producer_epoch == last.producer_epoch
        return header.last_offset == last.last_data_offset

    def _marker(self, batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
        for record in records(batch, header, self._job.max_records_bytes):
            return read_marker(record)
        return None

    def _batches(self, segment: SegmentSize) -> Iterator[tuple[memoryview, BatchHeader]]:
        path = offset_path(self._directory, segment.base_offset, LOG)
        self._read_bytes += segment.size_bytes
        size_bytes, buffer_bytes = segment.size_bytes, self._job.io_buffer_bytes
        next_offset, end_offset = segment.base_offset, self._ends[segment.base_offset]
        for batch, header in whole_batches(self._files, path, size_bytes, buffer_bytes):
            # No CRC covers the base offset: with a damaged one, the newest record of a key could
            # look like an old one.
            if not next_offset <= header.base_offset <= header.last_offset < end_offset:
                what = f"offset {header.base_offset} outside [{next_offset}, {end_offset})"
                raise CorruptFile(str(path), f"has a batch at {what}")
            next_offset = header.next_offset
            self._pace.passed(len(batch))
            yield batch, header

    def _segment_files(self) -> list[SegmentSizes]:
        return [
            SegmentSizes(
                segment,
                self._size(segment, INDEX),
                self._size(segment, TIME_INDEX),
                self._ends[segment.base_offset],
            )
            for segment in self._job.segments
        ]

    def _size(self, segment: SegmentSize, suffix: str) -> int:
        path = offset_path(self._directory, segment.base_offset, suffix)
        return self._files.size(path) if self._files.exists(path) else 0

    def _aborted_transactions(self) -> list[AbortedTxn]:
        """The aborted transactions of all segments: one that began here may end in the active
        segment.

        The active segment grows, but every entry that concerns this job was in its index before the
        job began.
        """
        found = []
        for name in self._files.names(self._directory):
            if name.endswith(TXN_INDEX):
                path = self._directory / name
                data = self._files.read(path)
                whole = data[: len(data) - len(data) % ENTRY_BYTES]
                found += decode_aborted(whole, int(path.stem), str(path))
        return found


_ORDINARY = BatchRetention()
