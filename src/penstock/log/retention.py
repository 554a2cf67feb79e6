"""Decides which segments to delete: by age, by size, or before the log start offset. Pure."""

from collections.abc import Iterable

import msgspec


class SegmentInfo(msgspec.Struct, frozen=True, gc=False):
    """A segment as retention sees it; its offsets are `[base_offset, end_offset)`."""

    base_offset: int
    end_offset: int
    size_bytes: int
    newest_ms: int
    active: bool


class Retention(msgspec.Struct, frozen=True, gc=False):
    """The bounds of one log; -1 stands for no bound."""

    retention_ms: int
    retention_bytes: int
    log_start_offset: int
    high_watermark: int


def deletable(
    segments: Iterable[SegmentInfo], total_bytes: int, bounds: Retention, now_ms: int
) -> int:
    """The number of leading segments that may be deleted.

    Stops at the first segment to keep: deleting out of order would leave a hole in the log. Records
    that are not replicated everywhere stay. The active segment is deleted only if it has records
    past the bounds: the log then rolls first, as in Kafka.
    """
    count = 0
    excess = total_bytes - bounds.retention_bytes
    for segment in segments:
        expired = 0 <= bounds.retention_ms < now_ms - segment.newest_ms
        oversize = bounds.retention_bytes >= 0 and excess >= segment.size_bytes
        passed = segment.end_offset <= bounds.log_start_offset and not segment.active
        if segment.end_offset > bounds.high_watermark or not (expired or oversize or passed):
            break
        if segment.active and segment.size_bytes == 0:
            break
        count += 1
        excess -= segment.size_bytes
    return count
