"""Finds batches in a log by offset or timestamp, and the aborted transactions of a range."""

from dataclasses import dataclass
from typing import Final

from penstock.errors import ErrorCode, KafkaError
from penstock.log.files import LogFile
from penstock.log.scan import headers
from penstock.log.segments import Segments
from penstock.log.time_index import TimestampOffset
from penstock.log.txn_index import AbortedTxn, overlapping
from penstock.record.search import first_since

DECOMPRESSED_LIMIT_BYTES: Final = 1 << 28
"""The limit for a batch that a search by time opens; its size was checked when it was produced."""

BATCHES_A_TURN: Final = 5_000
SEGMENTS_A_TURN: Final = 20
"""Headers that a search by time reads at once, and segments that it opens: some ten milliseconds.
"""


class LogSlice:
    """Part of a segment file, for `sendfile`. Its first batch holds the requested offset; its last
    one may be incomplete, as Kafka allows. The slice keeps the file open.
    """

    def __init__(
        self,
        file: LogFile,
        position: int,
        size_bytes: int,
    ) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        return self.file.read(self.position, self.size_bytes)


def slice_from(
    segments: Segments, offset: int, max_bytes: int, up_to: int | None, *, min_one_batch: bool
) -> LogSlice | None:
    """Batches from `offset` to before `up_to`, or to the end; None when there is none.

    `min_one_batch`: the first batch comes whole even if it is larger than `max_bytes`.
    """
    segment = segments.floor(offset)
    while segment is not None and (up_to is None or segment.base_offset < up_to):
        found = segment.find(offset)
        next_base = segments.end_of(segment)
        if found is not None:
            position, batch_bytes = found
            end = segment.size_bytes
            if up_to is not None and (next_base is None or up_to < next_base):
                limit = segment.find(up_to)
                end = end if limit is None else limit[0]
            if end <= position:
                return None  # the high watermark of records that were lost lies within a batch
            if min_one_batch:
                max_bytes = max(max_bytes, batch_bytes)
            elif max_bytes < batch_bytes:
                return None  # a reader cannot use part of its first batch
            return LogSlice(segment.file, position, min(end - position, max_bytes))
        # Compaction, or a truncation at a roll, leaves offsets that no batch has.
        segment = None if next_base is None else segments.floor(next_base)
    return None


@dataclass(frozen=True)
class TimeSearch:
    """The search for the first record at or after `timestamp`, from offset `start` on, among the
    batches in `[position, end)` of a segment.

    It keeps its file open as long as it lives.
    """

    file: LogFile
    position: int
    end: int
    timestamp: int
    start: int
    next_segment: int | None = None
    """The base offset of the segment to search next; None: there is none."""

    def run(self) -> "TimestampOffset | TimeSearch | None":
        """The record, None, or a search of the rest, so that other work gets its turn.

        Runs on any thread. Where many batches have the same timestamp, millions lie between two
        entries of the time index. One batch may hold millions of records, too.
        """
        found = headers(self.file, self.position, self.end)
        for count, (position, header) in enumerate(found, 1):
            behind = position + header.size_bytes
            if header.max_timestamp >= self.timestamp:
                batch = self.file.read(position, header.size_bytes)
                record = first_since(
                    batch, header, self.timestamp, self.start, DECOMPRESSED_LIMIT_BYTES
                )
                return self._behind(behind) if record is None else TimestampOffset(*record)
            if count == BATCHES_A_TURN:
                return self._behind(behind)
        return None

    def _behind(self, position: int) -> "TimeSearch":
        return TimeSearch(
            self.file, position, self.end, self.timestamp, self.start, self.next_segment
        )


def search_by_time(segments: Segments, timestamp: int, start: int) -> TimeSearch | int | None:
    """A search in the first segment, from offset `start` on, that may hold a record at or after
    `timestamp`.

    None when all records are older; the offset to go on from if there are too many segments to look
    at in one turn: each may have to be opened.
    """
    for count, segment in enumerate(segments.since(start)):
        if count == SEGMENTS_A_TURN:
            return segment.base_offset
        if segment.newest.timestamp < timestamp:
            continue
        # No record before this entry's offset is newer than its timestamp, and so than ours.
        indexed = segment.indexes.time_index.lookup(timestamp).offset
        found = segment.find(max(indexed, start))
        if found is not None:
            file, end, following = segment.file, segment.size_bytes, segments.end_of(segment)
            return TimeSearch(file, found[0], end, timestamp, start, following)
    return None


def newest_of_some(segments: Segments, start: int) -> tuple[TimestampOffset, int | None]:
    """The largest timestamp of some segments from offset `start` on, and the offset to go on
    from.
    """
    best = TimestampOffset(-1, start)
    for count, segment in enumerate(segments.since(start)):
        if count == SEGMENTS_A_TURN:
            return best, segment.base_offset
        if segment.newest.timestamp > best.timestamp:
            best = segment.newest
    return best, None


def search_for(segments: Segments, newest: TimestampOffset) -> TimeSearch | None:
    """A search for the first record with this timestamp, in the batch that ends at this offset."""
    segment = segments.floor(newest.offset)
    found = None if segment is None else segment.find(newest.offset)
    if segment is None or found is None:
        return None
    position, size = found
    return TimeSearch(segment.file, position, position + size, newest.timestamp, 0)


def end_of_slice(segments: Segments, start: int, found: LogSlice, up_to: int) -> int:
    """An offset after the records of a slice that begins at `start`, and near its end."""
    for segment in segments.since(start):
        if segment.path().name == found.file.path.name:
            after = segment.offset_index.offset_after(found.position + found.size_bytes)
            end = segments.end_of(segment) if after is None else after
            return up_to if end is None else min(end, up_to)
    return up_to


def aborted_between(segments: Segments, start: int, end: int) -> list[AbortedTxn]:
    """Aborted transactions with records in `[start, end)`, for a read_committed fetch."""
    found: list[AbortedTxn] = []
    for segment in segments.since(start):
        part, complete = overlapping(segment.txn_index.read(), start, end)
        found += part
        if complete:
            break
    return found


class OffsetOutOfRange(KafkaError):
    """The log has no such offset: it was deleted, or is not written yet."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, asked: int, start: int, end: int) -> None:
        super().__init__(f"offset {asked} is outside [{start}, {end})")
        self.asked, self.start, self.end = asked, start, end
