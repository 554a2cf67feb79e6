"""Loads the indexes of a segment: from their files, or from the batches where these are wrong."""

from pathlib import Path

from penstock.errors import StorageError
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, LogFile, OutOfFiles
from penstock.log.offset_index import OffsetIndex
from penstock.log.scan import headers
from penstock.log.segment_files import INDEX, TIME_INDEX, offset_path
from penstock.log.segment_indexes import (
    MAX_RELATIVE_OFFSET,
    MOST_INTERVAL_BYTES,
    IndexLimits,
    SegmentIndexes,
)
from penstock.log.time_index import TimeIndex
from penstock.record.batch import CorruptBatch


def opened(
    files: Files, directory: Path, base_offset: int, size_bytes: int, limits: IndexLimits
) -> SegmentIndexes:
    """The indexes as their files have them; `CorruptFile` if one is missing or cannot be right."""
    index_path = offset_path(directory, base_offset, INDEX)
    time_path = offset_path(directory, base_offset, TIME_INDEX)
    try:
        return SegmentIndexes(
            OffsetIndex.open(files, index_path, base_offset, size_bytes),
            TimeIndex.open(files, time_path, base_offset),
            limits,
        )
    except (CorruptFile, OutOfFiles):
        raise
    except StorageError as error:
        for path in (index_path, time_path):
            if not files.exists(path):
                raise CorruptFile(str(path), "is missing") from error
        raise


def emptied(files: Files, directory: Path, base_offset: int, limits: IndexLimits) -> SegmentIndexes:
    """Indexes without entries, whatever their files had."""
    return SegmentIndexes(
        OffsetIndex.empty(files, offset_path(directory, base_offset, INDEX), base_offset),
        TimeIndex.empty(files, offset_path(directory, base_offset, TIME_INDEX), base_offset),
        limits,
    )


def catch_up(indexes: SegmentIndexes, file: LogFile, base_offset: int, size_bytes: int) -> None:
    """Index the batches from the last entry on: few, unless entries are missing.

    Raises `CorruptBatch` if the entries do not match the batches.
    """
    newest = indexes.newest = indexes.time_index.last
    noted_offset = newest.offset if indexes.time_index.entries else -1
    entry_offset, position = indexes.offset_index.last()
    indexes.since_entry = 0
    last_offset = highest = entry_offset
    for at, header in headers(file, position, size_bytes):
        if not 0 <= header.last_offset - base_offset <= MAX_RELATIVE_OFFSET:
            # No CRC covers the base offset.
            raise CorruptBatch(f"offset {header.last_offset} is far from the base offset")
        if at == position > 0:
            if header.base_offset > entry_offset:
                raise CorruptBatch("the batch lies behind its index entry")
            if header.max_timestamp > newest.timestamp:
                raise CorruptBatch("the time index ends before the offset index")
            indexes.since_entry = header.size_bytes
        elif at > 0 and header.last_offset < noted_offset:
            # No entry for a batch before the newest timestamp: a truncation between the two would
            # keep the entry, and no timestamp for it. The interval may have shrunk.
            if indexes.since_entry > MOST_INTERVAL_BYTES and _lacks_offsets(
                indexes, base_offset, entry_offset
            ):
                raise CorruptBatch("the offset index ends before the time index")
            indexes.since_entry += header.size_bytes
        elif at == 0 or header.base_offset > highest:
            # Kafka may index a run of batches as one, by the last offset of all of them. A batch
            # whose offset is damaged may be out of order: no entry leads to it.
            indexes.note(at, header.size_bytes, header.last_offset, header.max_timestamp)
        last_offset = header.last_offset
        highest = max(highest, last_offset)
    if last_offset < entry_offset:
        raise CorruptBatch("the last index entry is of no batch")
    indexes.check_size()


def _lacks_offsets(indexes: SegmentIndexes, base_offset: int, entry_offset: int) -> bool:
    """Whether the offset index is short: a stop notes one timestamp after its last entry, and
    Kafka indexes a run of batches as one.
    """
    times = indexes.time_index.entries
    count = len(times)
    is_empty = len(indexes.offset_index.entries) == 0
    return is_empty or (count > 1 and base_offset + times[count - 2][1] > entry_offset)
