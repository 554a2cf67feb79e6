"""Deletes the segments of a log that retention does not keep."""

from itertools import islice

from penstock.log.partition_log import PartitionLog
from penstock.log.retention import Retention, deletable


def delete_old_segments(log: PartitionLog, now_ms: int, most: int | None = None) -> int:
    """Apply retention, to `most` segments at a time; returns the number of segments deleted."""
    if log.is_gone:
        return 0
    by_policy = "delete" in log.config.cleanup_policy
    bounds = Retention(
        log.config.retention_ms if by_policy else -1,
        log.config.retention_bytes if by_policy else -1,
        log.log_start_offset,
        log.high_watermark,
    )
    with log.log_dir:
        oldest = islice(log.segments.infos(log.end_offset), most)
        count = deletable(oldest, log.size_bytes, bounds, now_ms)
        if count == 0:
            return 0
        if count == len(log.segments):
            log.roll(now_ms)
        first_kept = list(log.segments)[count]
        log.maybe_increment_log_start(first_kept.base_offset)
        log.segments.delete_first(count, log.config.file_delete_delay_ms)
        log.unflushed.names_changed = True
    return count
