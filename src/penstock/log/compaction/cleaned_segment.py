"""A new segment under `.cleaned` names: invisible to readers, removed by a restart."""

from pathlib import Path

from penstock.log.files import Files, LogFile
from penstock.log.offset_index import OffsetIndex
from penstock.log.segment_files import (
    CLEANED,
    INDEX,
    LOG,
    SEGMENT_FILES,
    TIME_INDEX,
    TXN_INDEX,
    offset_path,
)
from penstock.log.segment_indexes import MOST_INTERVAL_BYTES, IndexLimits
from penstock.log.time_index import TimeIndex, TimestampOffset
from penstock.log.txn_index import AbortedTxn, encode_aborted
from penstock.record.batch import BatchHeader
from penstock.types import Buffer


class CleanedSegment:
    """Appends batches in large writes and indexes them as a live segment would."""

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        *,
        limits: IndexLimits,
        io_buffer_bytes: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._limits = limits
        self._io_buffer_bytes = io_buffer_bytes
        self.discard()  # left by a cleaning that was stopped
        self._file = files.open(self._path(LOG), create=True)
        self._offset_index = OffsetIndex.empty(files, self._path(INDEX), base_offset)
        self._time_index = TimeIndex.empty(files, self._path(TIME_INDEX), base_offset)
        self._newest = TimestampOffset(-1, base_offset)
        self._since_entry = 0
        self._waiting = bytearray()
        self.size_bytes = 0

    def append(self, batch: Buffer, header: BatchHeader) -> None:
        """Append a batch; `header` is the header of these bytes."""
        position = self.size_bytes
        self._waiting += batch
        self.size_bytes = position + len(batch)
        if len(self._waiting) >= self._io_buffer_bytes:
            self._write()
        if header.max_timestamp > self._newest.timestamp:
            self._newest = TimestampOffset(header.max_timestamp, header.last_offset)
        if self._since_entry > self._limits.interval_bytes and (
            # `segment.index.bytes` may have been lowered since the old segment was written.
            self._since_entry > MOST_INTERVAL_BYTES
            or not self._limits.reached(self._offset_index, self._time_index)
        ):
            self._offset_index.append(header.last_offset, position)
            self._time_index.append(self._newest)
            self._since_entry = 0
        self._since_entry += len(batch)

    def finish(self, aborted: list[AbortedTxn]) -> None:
        """Complete all files and sync them."""
        self._write()
        self._time_index.append(self._newest)
        self._offset_index.entries.trim()
        self._time_index.entries.trim()
        written: list[LogFile] = [
            self._file,
            self._offset_index.entries.handle(),
            self._time_index.entries.handle(),
        ]
        if aborted:
            written.append(self._files.open(self._path(TXN_INDEX), create=True))
            written[-1].append(b"".join(map(encode_aborted, aborted)))
        for file in written:
            file.sync()
            file.close()
        self._files.sync_dir(self._directory)

    def discard(self) -> None:
        """Remove the files, so that they take no space on a full disk."""
        for suffix in SEGMENT_FILES:
            self._files.remove(self._path(suffix))

    def _write(self) -> None:
        if self._waiting:
            self._file.append(self._waiting)
            self._waiting = bytearray()

    def _path(self, suffix: str) -> Path:
        return offset_path(self._directory, self._base_offset, suffix + CLEANED)
