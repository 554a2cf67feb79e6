"""One segment of a log: a file of batches, and the indexes into it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, LogFile, OutOfFiles
from penstock.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from penstock.log.offset_index import OffsetIndex
from penstock.log.open_segments import OpenSegments
from penstock.log.scan import headers, spans
from penstock.log.segment_files import (
    DELETED,
    INDEX,
    LOG,
    SEGMENT_FILES,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    offset_path,
)
from penstock.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from penstock.log.time_index import TimeIndex, TimestampOffset
from penstock.log.txn_index import AbortedTxn, decode_aborted, encode_aborted, kept_bytes
from penstock.record.batch import BatchHeader, CorruptBatch
from penstock.types import Buffer

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
MOST_INTERVAL_BYTES: Final = 1 << 19
"""The upper limit of `index.interval.bytes`, which anyone who may create a topic can set.

Between two entries batches are read one by one, on the loop: a segment without any entry would
block it for seconds.
"""
NOWHERE: Final = (-1, 0)

logger = logging.getLogger(__name__)


class DamagedOffset(CorruptBatch):
    """A base offset that no rebuilt index can repair: it is out of order among the batches.

    No CRC covers base offsets. Readers of other batches are served.
    """


@dataclass(frozen=True)
class IndexLimits:
    """The density and size limits of a segment's indexes."""

    interval_bytes: int
    size_bytes: int

    @classmethod
    def of(cls, config: TopicConfig) -> "IndexLimits":
        interval_bytes = min(config.index_interval_bytes, MOST_INTERVAL_BYTES)
        return cls(interval_bytes, config.segment_index_bytes)

    def reached(self, offset_index: OffsetIndex, time_index: TimeIndex) -> bool:
        # The last slot of a time index is kept for the newest timestamp, noted at the roll.
        return (
            len(offset_index.entries) >= self.size_bytes // OFFSET_ENTRY_BYTES
            or len(time_index.entries) >= self.size_bytes // TIME_ENTRY_BYTES - 1
        )


class Segment:
    """The batches from `base_offset` up to the next segment's.

    Files are opened and indexes loaded at the first use, and released by `OpenSegments`. An index
    that is missing, short or wrong is rebuilt from the batches.
    """

    __slots__ = (
        "_aborted",
        "_after",
        "_file",
        "_files",
        "_first_timestamp",
        "_limits",
        "_newest",
        "_offset_index",
        "_open",
        "_rebuilt",
        "_since_entry",
        "_time_index",
        "base_offset",
        "created_ms",
        "directory",
        "index_is_full",
        "size_bytes",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        size_bytes: int,
        *,
        limits: IndexLimits,
        created_ms: int,
        open_segments: OpenSegments,
    ) -> None:
        self._files = files
        self._open = open_segments
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.index_is_full = False
        self._limits = limits
        self.created_ms = created_ms
        self._file: LogFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._newest: TimestampOffset | None = None
        self._aborted: list[AbortedTxn] | None = None
        self._first_timestamp: int | None = None
        self._since_entry = 0
        self._rebuilt = False
        self._after = NOWHERE
        """Offset and position after the last batch found: a sequential reader requests it next."""

    def path(self, suffix: str = LOG) -> Path:
        return offset_path(self.directory, self.base_offset, suffix)

    @property
    def file(self) -> LogFile:
        if self._file is None:
            if not self._files.has_room():
                self._open.make_room(self._files, self.path())
            self._file = self._files.open(self.path(), create=True)
            self._open.add(self)
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._load_indexes()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    @property
    def newest(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that has it."""
        if self._newest is None:
            self._load_indexes()
        assert self._newest is not None
        return self._newest

    @property
    def newest_ms(self) -> int:
        """The newest timestamp, or the time of the file if there is none or a batch is damaged.

        For retention.
        """
        try:
            timestamp = self.newest.timestamp
        except CorruptBatch:
            timestamp = -1
        return timestamp if timestamp >= 0 else self._files.modified_ms(self.path())

    @property
    def first_timestamp(self) -> int:
        """The timestamp of the first batch; -1 if there is none. A segment's age counts from it."""
        if self._first_timestamp is None:
            for _, header in headers(self.file, 0, self.size_bytes):
                self._first_timestamp = header.max_timestamp
                return self._first_timestamp
            return -1
        return self._first_timestamp

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end; its offset is already assigned."""
        if self._offset_index is None:
            self._preallocate()
        position = self.size_bytes
        (self._file or self.file).append(batch)
        self.size_bytes = position + len(batch)
        self.note(position, len(batch), last_offset, max_timestamp)

    def append_run(self, run: Buffer, run_headers: list[BatchHeader]) -> None:
        """Write consecutive batches at the end in one go."""
        if self._offset_index is None:
            self._preallocate()
        position = self.size_bytes
        self.file.append(run)
        self.size_bytes = position + len(run)
        for header in run_headers:
            self.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
            position += header.size_bytes

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        assert self._newest is not None
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > self._newest.timestamp:
            self._newest = TimestampOffset(max_timestamp, last_offset)
        if self._since_entry > self._limits.interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self._newest)
            self._since_entry = 0
            self.index_is_full = self._limits.reached(self.offset_index, self.time_index)
        self._since_entry += size

    def find(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the batch that holds `offset`, or of the first one after it."""
        after_offset, after = self._after
        is_next = offset == after_offset and after < self.size_bytes
        entry_offset, position = self._after if is_next else self.offset_index.lookup(offset)
        # An entry's batch may begin before the entry's offset, and the first batch before the base
        # offset.
        before = offset - 1 if is_next else -1
        found: tuple[int, int] | None = None
        is_behind_entry = False
        try:
            if position >= self.size_bytes > 0:
                raise CorruptBatch("an index entry points behind the end")
            for at, base_offset, last_offset, size in spans(
                self._file or self.file, position, self.size_bytes
            ):
                if base_offset <= before:
                    raise DamagedOffset(f"{self.path()}: offset {base_offset} follows {before}")
                if found is not None or is_behind_entry:
                    break
                if at == position and not is_next and position > 0:
                    # The next batch tells whether the entry is wrong, or the batch.
                    is_behind_entry = base_offset > entry_offset
                elif not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
                    raise DamagedOffset(f"{self.path()}: offset {last_offset} is too far")
                before = last_offset
                if last_offset >= offset and not is_behind_entry:
                    found = at, size
                    if base_offset <= offset:
                        break
                    if offset == entry_offset and position > 0 and not is_next:
                        raise CorruptBatch("an index entry is of no batch")
                    # The next batch tells whether this one follows a gap, or is damaged.
            if is_behind_entry:
                raise CorruptBatch("the batch lies behind its index entry")
            if found is not None:
                self._after = before + 1, found[0] + found[1]
                return found
        except DamagedOffset:
            self._after = NOWHERE
            raise
        except CorruptBatch as error:
            self._after = NOWHERE
            if self._rebuilt:
                raise
            # The index may be wrong: search the batches themselves.
            self._distrust_indexes(str(error))
            return self.find(offset)
        return None

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from the one that holds `offset`."""
        found = self.find(offset)
        if found is not None:
            yield from headers(self.file, found[0], self.size_bytes)

    def next_offset(self) -> int:
        """The offset after the last batch: the log's end, when this segment is active."""
        _, position = self.offset_index.last()
        end = self.base_offset
        for _, _, last_offset, _ in spans(self.file, position, self.size_bytes):
            end = last_offset + 1
        return end

    def aborted(self) -> list[AbortedTxn]:
        """The aborted transactions that end here."""
        if self._aborted is None:
            path = self.path(TXN_INDEX)
            data = self._files.read(path) if self._files.exists(path) else b""
            self._aborted = decode_aborted(data, self.base_offset, str(path))
        return self._aborted

    def open_aborted(self) -> LogFile:
        """Open the index for `append_aborted`: after the marker is written, no descriptor may be
        left.
        """
        return self._files.open(self.path(TXN_INDEX), create=True)

    def append_aborted(self, txn: AbortedTxn, file: LogFile | None = None) -> None:
        (file or self.open_aborted()).append(encode_aborted(txn))
        if self._aborted is not None:
            self._aborted.append(txn)

    def forget_aborted(self) -> None:
        self._files.remove(self.path(TXN_INDEX))
        self._aborted = None

    def begin_indexes(self) -> None:
        """Create the indexes of a new log, which has none on the disk."""
        self._offset_index = OffsetIndex.new(self._files, self.path(INDEX), self.base_offset)
        self._time_index = TimeIndex.new(self._files, self.path(TIME_INDEX), self.base_offset)
        self._newest = TimestampOffset(-1, self.base_offset)
        self._preallocate()

    def truncate_to(self, offset: int) -> None:
        """Cut before the batch that holds `offset`."""
        found = self.find(offset)
        if found is None:
            return
        aborted = self.path(TXN_INDEX)
        if self._files.exists(aborted):
            kept = kept_bytes(self._files.read(aborted), self.base_offset, offset, str(aborted))
            self._files.open(aborted).truncate(kept)
            self._aborted = None
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.cut(found[0])
        # The newest timestamp may have been cut and the last entries may be those of a roll.
        try:
            self._catch_up()
        except CorruptBatch as error:  # the batches are cut: not to be left half way
            self._distrust_indexes(str(error))

    def cut(self, position: int) -> None:
        self._after = NOWHERE
        self.file.truncate(position)
        self.size_bytes = position
        if position == 0:
            self._first_timestamp = None

    def close(self) -> None:
        """Complete and trim the indexes: nothing will be appended for now."""
        self.time_index.append(self.newest)
        self.offset_index.entries.trim()
        self.time_index.entries.trim()

    def release(self, *, trim: bool = True) -> None:
        """Close the files; slices keep theirs open.

        Without `trim` the indexes are not needed any more: the log is deleted.
        """
        if trim and self._offset_index is not None and self._time_index is not None:
            # Trimmed, because the size of the file tells how many entries it has.
            self._offset_index.entries.trim()
            self._time_index.entries.trim()
        self._file = self._offset_index = self._time_index = self._aborted = None

    def to_sync(self) -> list[LogFile]:
        """The files that a flush must sync."""
        found = [self.file, self.offset_index.entries.handle(), self.time_index.entries.handle()]
        if self._files.exists(self.path(TXN_INDEX)):
            found.append(self._files.open(self.path(TXN_INDEX)))
        return found

    def names_to_sync(self) -> list[str]:
        """The names of the files to sync, of a closed segment: all its entries are written."""
        return [self.path(suffix).name for suffix in SEGMENT_FILES]

    def rename_deleted(self, *, keep_snapshot: bool = False) -> list[Path]:
        """Rename the files so that a restart removes them; returns the paths to remove later."""
        self._open.discard(self)
        self._file = None
        doomed = []
        for suffix in SEGMENT_FILES if keep_snapshot else (*SEGMENT_FILES, SNAPSHOT):
            path = self.path(suffix)
            if self._files.exists(path):
                deleted = path.with_name(path.name + DELETED)
                self._files.rename(path, deleted)
                doomed.append(deleted)
        return doomed

    def _preallocate(self) -> None:
        """Give the indexes the size they may grow to; it takes no space on the disk yet."""
        size = self._limits.size_bytes
        self.offset_index.entries.preallocate(size - size % OFFSET_ENTRY_BYTES)
        self.time_index.entries.preallocate(size - size % TIME_ENTRY_BYTES)

    def _load_indexes(self) -> None:
        try:
            self._open_indexes()
        except OutOfFiles:
            self._offset_index = self._time_index = self._newest = None
            raise

    def _open_indexes(self) -> None:
        try:
            self._offset_index = OffsetIndex.open(
                self._files, self.path(INDEX), self.base_offset, self.size_bytes
            )
            self._time_index = TimeIndex.open(self._files, self.path(TIME_INDEX), self.base_offset)
        except OutOfFiles:
            raise
        except StorageError as error:
            missing = not self._files.exists(self.path(INDEX)) or not self._files.exists(
                self.path(TIME_INDEX)
            )
            if not missing and not isinstance(error, CorruptFile):
                raise
            self._distrust_indexes(str(error))
            return
        try:
            self._catch_up()
        except CorruptBatch as error:
            self._distrust_indexes(str(error))

    def _distrust_indexes(self, why: str) -> None:
        if self.size_bytes:
            logger.warning("%s: the indexes are rebuilt: %s", self.path(), why)
        self.reset_indexes()
        self._rebuilt = True
        self._catch_up()

    def reset_indexes(self) -> None:
        self._offset_index = OffsetIndex.empty(self._files, self.path(INDEX), self.base_offset)
        self._time_index = TimeIndex.empty(self._files, self.path(TIME_INDEX), self.base_offset)
        self._newest = TimestampOffset(-1, self.base_offset)
        self._since_entry = 0

    def _lacks_offsets(self, entry_offset: int) -> bool:
        """Whether the offset index is short: a stop notes one timestamp after its last entry, and
        Kafka indexes a run of batches as one.
        """
        times = self.time_index.entries
        count = len(times)
        is_empty = len(self.offset_index.entries) == 0
        return is_empty or (count > 1 and self.base_offset + times[count - 2][1] > entry_offset)

    def _catch_up(self) -> None:
        """Index the batches from the last entry on: few, unless entries are missing."""
        assert self._offset_index is not None
        assert self._time_index is not None
        self._newest = self._time_index.last
        noted_offset = self._newest.offset if self._time_index.entries else -1
        entry_offset, position = self._offset_index.last()
        self._since_entry = 0
        last_offset = highest = entry_offset
        for at, header in headers(self.file, position, self.size_bytes):
            if not 0 <= header.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
                # No CRC covers the base offset.
                raise CorruptBatch(f"offset {header.last_offset} is far from the base offset")
            if at == position > 0:
                if header.base_offset > entry_offset:
                    raise CorruptBatch("the batch lies behind its index entry")
                if header.max_timestamp > self._newest.timestamp:
                    raise CorruptBatch("the time index ends before the offset index")
                self._since_entry = header.size_bytes
            elif at > 0 and header.last_offset < noted_offset:
                # No entry for a batch before the newest timestamp: a truncation between the two
                # would keep the entry, and no timestamp for it. The interval may have shrunk.
                if self._since_entry > MOST_INTERVAL_BYTES and self._lacks_offsets(entry_offset):
                    raise CorruptBatch("the offset index ends before the time index")
                self._since_entry += header.size_bytes
            elif at == 0 or header.base_offset > highest:
                # Kafka may index a run of batches as one, by the last offset of all of them.
                # A batch whose offset is damaged may be out of order: no entry leads to it.
                self.note(at, header.size_bytes, header.last_offset, header.max_timestamp)
            last_offset = header.last_offset
            highest = max(highest, last_offset)
        if last_offset < entry_offset:
            raise CorruptBatch("the last index entry is of no batch")
        self.index_is_full = self._limits.reached(self._offset_index, self._time_index)
