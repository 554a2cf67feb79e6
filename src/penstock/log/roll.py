"""Decides when a log rolls to a new segment."""

from dataclasses import dataclass
from zlib import crc32

from penstock.log.segment import MAX_RELATIVE_OFFSET, Segment


@dataclass(frozen=True)
class RollRules:
    """A log's bounds on a segment; `name` spreads the rolls of many logs over the jitter."""

    name: str
    segment_bytes: int
    segment_ms: int
    jitter_ms: int

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
