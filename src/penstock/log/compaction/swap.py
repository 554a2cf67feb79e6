"""The hand-over of cleaned segments, on the broker's loop: `.cleaned` → `.swap` → segment.

The log may change while the other process works. So the segments to replace must still be the ones
that it read: after retention or a truncation its work is dropped.

The deciding step is the rename of the last `.cleaned` file to `.swap`. A crash before it leaves the
log as it was, one after it leaves the replacement to the restart.
"""

from penstock.log.compaction.job import CleanedGroup
from penstock.log.files import Files, finished_or_failed
from penstock.log.partition_log import PartitionLog
from penstock.log.segment import Segment
from penstock.log.segment_files import CLEANED, SEGMENT_FILES, SWAP, offset_path


def swap_in(files: Files, log: PartitionLog, group: CleanedGroup, now_ms: int) -> bool:
    """Replace the segments of `group`; False if they have changed, and nothing was done.

    There is no sync between the renames: file systems keep the order of those in one directory.
    The log syncs its directory with the next flush.
    """
    old = unchanged(log, group)
    cleaned = [
        offset_path(log.path, group.base_offset, suffix + CLEANED) for suffix in SEGMENT_FILES
    ]
    with log.log_dir:
        if old is None:
            for path in cleaned:
                files.remove(path)
            return False
        for path in reversed(cleaned):
            if files.exists(path):
                files.rename(path, path.with_name(path.name.removesuffix(CLEANED) + SWAP))
        delay_ms = log.config.file_delete_delay_ms
        with finished_or_failed():
            log.segments.swap_in(old, group.base_offset, now_ms=now_ms, delay_ms=delay_ms)
        log.unflushed.names_changed = True
    return True


def unchanged(log: PartitionLog, group: CleanedGroup) -> list[Segment] | None:
    """The log's segments that were cleaned; None unless all are there as they were."""
    if log.is_gone or log.generation != group.generation:
        return None
    live = {segment.base_offset: segment for segment in log.segments}
    found = []
    for each in group.replaces:
        segment = live.get(each.base_offset)
        if segment is None or segment is log.segments.active:
            return None
        if segment.size_bytes != each.size_bytes:
            return None
        found.append(segment)
    return found
