"""One segment of a log: a file of batches, and the bounds at which the next one begins."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from penstock.config.topic import TopicConfig
from penstock.log.batch_search import BatchSearch, DamagedOffset
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, LogFile, OutOfFiles
from penstock.log.index_loading import catch_up, emptied, opened
from penstock.log.offset_index import OffsetIndex
from penstock.log.open_segments import OpenSegments
from penstock.log.scan import headers, spans
from penstock.log.segment_files import (
    DELETED,
    LOG,
    SEGMENT_FILES,
    SNAPSHOT,
    TXN_INDEX,
    offset_path,
)
from penstock.log.segment_indexes import MAX_RELATIVE_OFFSET, IndexLimits, SegmentIndexes
from penstock.log.time_index import TimestampOffset
from penstock.log.txn_index import TxnIndex
from penstock.record.batch import BatchHeader, CorruptBatch
from penstock.types import Buffer

logger = logging.getLogger(__name__)


class Segment:
    """The batches from `base_offset` up to the next segment's.

    Files are opened and indexes loaded at the first use, and released by `OpenSegments`. An index
    that is missing, short or wrong is rebuilt from the batches.
    """

    __slots__ = (
        "_file",
        "_files",
        "_first_timestamp",
        "_indexes",
        "_limits",
        "_newest",
        "_open",
        "_rebuilt",
        "_search",
        "_txn_index",
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
        self._indexes: SegmentIndexes | None = None
        self._newest: TimestampOffset | None = None
        """As of the release of the indexes."""
        self._txn_index: TxnIndex | None = None
        self._first_timestamp: int | None = None
        self._rebuilt = False
        self._search = BatchSearch()

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
    def indexes(self) -> SegmentIndexes:
        if self._indexes is None:
            self._load_indexes()
        assert self._indexes is not None
        return self._indexes

    @property
    def offset_index(self) -> OffsetIndex:
        return self.indexes.offset_index

    @property
    def txn_index(self) -> TxnIndex:
        if self._txn_index is None:
            self._txn_index = TxnIndex(self._files, self.path(TXN_INDEX), self.base_offset)
        return self._txn_index

    @property
    def newest(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that has it."""
        if self._indexes is None and self._newest is not None:
            return self._newest
        return self.indexes.newest

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
        if self._indexes is None:
            self.indexes.preallocate()
        position = self.size_bytes
        (self._file or self.file).append(batch)
        self.size_bytes = position + len(batch)
        self.note(position, len(batch), last_offset, max_timestamp)

    def append_run(self, run: Buffer, run_headers: list[BatchHeader]) -> None:
        """Write consecutive batches at the end in one go."""
        if self._indexes is None:
            self.indexes.preallocate()
        position = self.size_bytes
        self.file.append(run)
        self.size_bytes = position + len(run)
        for header in run_headers:
            self.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
            position += header.size_bytes

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        if position == 0:
            self._first_timestamp = max_timestamp
        indexes = self.indexes
        indexes.note(position, size, last_offset, max_timestamp)
        self.index_is_full = indexes.is_full

    def find(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the batch that holds `offset`, or of the first one after it."""
        try:
            return self._search.find(self, offset)
        except CorruptBatch as error:
            self._search.forget()
            if self._rebuilt or isinstance(error, DamagedOffset):
                raise
            # The index may be wrong: search the batches themselves.
            self._distrust_indexes(str(error))
            return self.find(offset)

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

    def begin_indexes(self) -> None:
        """Create the indexes of a new log, which has none on the disk."""
        self._indexes = SegmentIndexes.new(
            self._files, self.directory, self.base_offset, self._limits
        )
        self._indexes.preallocate()

    def truncate_to(self, offset: int) -> None:
        """Cut before the batch that holds `offset`."""
        found = self.find(offset)
        if found is None:
            return
        self.txn_index.truncate_to(offset)
        self.indexes.truncate_to(offset)
        self.cut(found[0])
        # The newest timestamp may have been cut and the last entries may be those of a roll.
        try:
            self._catch_up()
        except CorruptBatch as error:  # the batches are cut: not to be left half way
            self._distrust_indexes(str(error))

    def cut(self, position: int) -> None:
        self._search.forget()
        self.file.truncate(position)
        self.size_bytes = position
        if position == 0:
            self._first_timestamp = None

    def close(self) -> None:
        """Complete and trim the indexes: nothing will be appended for now."""
        self.indexes.complete()

    def release(self, *, trim: bool = True) -> None:
        """Close the files; slices keep theirs open.

        Without `trim` the indexes are not needed any more: the log is deleted.
        """
        if self._indexes is not None:
            if trim:
                self._indexes.trim()
            self._newest = self._indexes.newest
        self._file = self._indexes = self._txn_index = None

    def to_sync(self) -> list[LogFile]:
        """The files that a flush must sync."""
        found = [self.file, *self.indexes.handles()]
        if self._files.exists(self.path(TXN_INDEX)):
            found.append(self._files.open(self.path(TXN_INDEX)))
        return found

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

    def _load_indexes(self) -> None:
        try:
            try:
                self._indexes = opened(
                    self._files, self.directory, self.base_offset, self.size_bytes, self._limits
                )
                self._catch_up()
            except (CorruptFile, CorruptBatch) as error:
                self._distrust_indexes(str(error))
        except OutOfFiles:
            self._indexes = self._newest = None
            raise

    def _distrust_indexes(self, why: str) -> None:
        if self.size_bytes:
            logger.warning("%s: the indexes are rebuilt: %s", self.path(), why)
        self.reset_indexes()
        self._rebuilt = True
        self._catch_up()

    def reset_indexes(self) -> None:
        self._indexes = emptied(self._files, self.directory, self.base_offset, self._limits)

    def _catch_up(self) -> None:
        indexes = self.indexes
        try:
            catch_up(indexes, self.file, self.base_offset, self.size_bytes)
        finally:
            self.index_is_full = indexes.is_full


@dataclass(frozen=True)
class RollRules:
    """A log's bounds on a segment; `name` spreads the rolls of many logs over the jitter."""

    name: str
    segment_bytes: int
    segment_ms: int
    jitter_ms: int

    @classmethod
    def of(cls, name: str, config: TopicConfig) -> "RollRules":
        segment_ms = config.segment_ms
        if "compact" in config.cleanup_policy:
            # Only closed segments are compacted: close them before their compaction is due
            # (KIP-354).
            segment_ms = min(segment_ms, config.max_compaction_lag_ms)
        return cls(name, config.segment_bytes, segment_ms, config.segment_jitter_ms)

    def fits(self, segment: Segment, last_offset: int, size: int) -> bool:
        return (
            segment.size_bytes + size <= self.segment_bytes
            and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
        )

    def is_due(
        self, segment: Segment, *, last_offset: int, size: int, timestamp: int, now_ms: int
    ) -> bool:
        """Whether batches of `size` bytes up to `last_offset` need a new segment.

        An empty one takes any size: no roll would make more room.
        """
        if segment.size_bytes == 0:
            return last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
        return (
            segment.index_is_full
            or not self.fits(segment, last_offset, size)
            or self._is_old(segment, timestamp, now_ms)
        )

    def _is_old(self, segment: Segment, timestamp: int, now_ms: int) -> bool:
        # By the records' timestamps, so that a replica rolls where its leader did.
        first = segment.first_timestamp
        age_ms = timestamp - first if first >= 0 else now_ms - segment.created_ms
        return age_ms > self.segment_ms - (self._jitter(segment) if self.jitter_ms else 0)

    def _jitter(self, segment: Segment) -> int:
        # Deterministic: the same after each restart.
        most = min(self.jitter_ms, self.segment_ms)
        return crc32(f"{self.name}/{segment.base_offset}".encode()) % most
