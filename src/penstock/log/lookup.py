"""Finding places in a log: by offset, by timestamp, and the transactions aborted in a range."""

from collections.abc import Iterator

import msgspec

from penstock.log.files import LogFile
from penstock.log.segment import Segment
from penstock.log.segments import Segments
from penstock.log.time_index import TimestampOffset
from penstock.log.txn_index import AbortedTxn, overlapping
from penstock.record.batch import BatchHeader
from penstock.record.record import Record, records

DECOMPRESSED_LIMIT_BYTES = 1 << 28
"""Of one batch that a search by time opens; it was checked when it was produced."""


class LogSlice(msgspec.Struct, frozen=True):
    """Part of a segment file, for `sendfile`. Its first batch holds the offset asked for; its
    last one may be cut, as Kafka allows. It keeps its file open as long as it lives.
    """

    file: LogFile
    position: int
    size_bytes: int

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
            if min_one_batch:
                max_bytes = max(max_bytes, batch_bytes)
            elif max_bytes < batch_bytes:
                return None  # a reader cannot use part of its first batch
            return LogSlice(segment.file, position, min(end - position, max_bytes))
        # Compaction, or a cut at a roll, leaves offsets that no batch of a segment has.
        segment = None if next_base is None else segments.floor(next_base)
    return None


def offset_for_timestamp(
    segments: Segments, timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record at or after `timestamp`; None when all are older."""
    for segment in segments.since(log_start_offset):
        if segment.newest.timestamp >= timestamp:
            found = _search(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def _search(segment: Segment, timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    # No record before this entry's offset is newer than its timestamp, and so than ours.
    start = max(segment.time_index.lookup(timestamp).offset, log_start_offset)
    for position, header in segment.headers_from(start):
        if header.max_timestamp >= timestamp:
            for record in records_at(segment, position, header):
                if record.timestamp >= timestamp and record.offset >= log_start_offset:
                    return TimestampOffset(record.timestamp, record.offset)
    return None


def offset_of_max_timestamp(segments: Segments) -> TimestampOffset | None:
    """The first record with the largest timestamp (KIP-734); None in an empty log."""
    newest = max(segments, key=lambda segment: segment.newest.timestamp)
    if newest.newest.timestamp < 0:
        return None
    for position, header in newest.headers_from(newest.newest.offset):
        for record in records_at(newest, position, header):
            if record.timestamp == newest.newest.timestamp:
                return TimestampOffset(record.timestamp, record.offset)
    return None


def records_at(segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    """One by one: a batch may hold a million, and all of them would take 200 MB."""
    batch = segment.file.read(position, header.size_bytes)
    return records(batch, header, DECOMPRESSED_LIMIT_BYTES)


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
        part, complete = overlapping(segment.aborted(), start, end)
        found += part
        if complete:
            break
    return found
