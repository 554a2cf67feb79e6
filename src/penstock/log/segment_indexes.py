"""The indexes of one segment: an entry in each for every `index.interval.bytes` of batches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.config.topic import TopicConfig
from penstock.log.files import Files, LogFile
from penstock.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from penstock.log.offset_index import OffsetIndex
from penstock.log.segment_files import INDEX, TIME_INDEX, offset_path
from penstock.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from penstock.log.time_index import TimeIndex, TimestampOffset

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
MOST_INTERVAL_BYTES: Final = 1 << 19
"""The upper limit of `index.interval.bytes`, which anyone who may create a topic can set.

Between two entries batches are read one by one, on the loop: a segment without any entry would
block it for seconds.
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


class SegmentIndexes:
    """The offset index and the time index, and what their next entries will say."""

    __slots__ = ("_limits", "is_full", "newest", "offset_index", "since_entry", "time_index")

    def __init__(
        self, offset_index: OffsetIndex, time_index: TimeIndex, limits: IndexLimits
    ) -> None:
        self.offset_index, self.time_index, self._limits = offset_index, time_index, limits
        self.newest = time_index.last
        """The largest timestamp, and the last offset of the first batch that has it."""
        self.since_entry = 0
        """Bytes of the batches from the last entry on."""
        self.is_full = False

    @classmethod
    def new(
        cls, files: Files, directory: Path, base_offset: int, limits: IndexLimits
    ) -> "SegmentIndexes":
        """The indexes of a new log, which has none on the disk; their files are created later."""
        index_path = offset_path(directory, base_offset, INDEX)
        time_path = offset_path(directory, base_offset, TIME_INDEX)
        return cls(
            OffsetIndex.new(files, index_path, base_offset),
            TimeIndex.new(files, time_path, base_offset),
            limits,
        )

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Note a batch that is in the segment file."""
        if max_timestamp > self.newest.timestamp:
            self.newest = TimestampOffset(max_timestamp, last_offset)
        if self.since_entry > self._limits.interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.newest)
            self.since_entry = 0
            self.check_size()
        self.since_entry += size

    def check_size(self) -> None:
        self.is_full = self._limits.reached(self.offset_index, self.time_index)

    def preallocate(self) -> None:
        """Give the indexes the size they may grow to; it takes no space on the disk yet."""
        size = self._limits.size_bytes
        self.offset_index.entries.preallocate(size - size % OFFSET_ENTRY_BYTES)
        self.time_index.entries.preallocate(size - size % TIME_ENTRY_BYTES)

    def truncate_to(self, offset: int) -> None:
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)

    def complete(self) -> None:
        """Note the newest timestamp and trim: nothing will be appended for now."""
        self.time_index.append(self.newest)
        self.trim()

    def trim(self) -> None:
        # The size of a file tells how many entries it has.
        self.offset_index.entries.trim()
        self.time_index.entries.trim()

    def handles(self) -> list[LogFile]:
        """The files, all entries in them, for a sync."""
        return [self.offset_index.entries.handle(), self.time_index.entries.handle()]
