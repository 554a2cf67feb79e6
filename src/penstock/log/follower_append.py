"""Appends batches that a follower fetched, as its leader wrote them."""

from collections.abc import Iterator

from penstock.errors import KafkaError
from penstock.log.partition_log import Appended, PartitionLog
from penstock.log.replay import marker_in
from penstock.log.truncation import truncate_fully_and_start_at
from penstock.record.batch import BatchHeader, CorruptBatch, batches, crc_matches
from penstock.record.control import EndTransactionMarker
from penstock.types import Buffer


def append_as_follower(log: PartitionLog, data: Buffer, now_ms: int) -> Appended | None:
    """Append whole batches; an incomplete one at the end is left out. None if there is none."""
    view = memoryview(data)
    is_empty = log.log_start_offset == log.end_offset
    found = list(checked_batches(view, log.end_offset, is_empty=is_empty))
    if not found:
        return None
    first_offset = found[0][1].base_offset
    with log.log_dir:
        if first_offset < log.end_offset:
            _begin_within(log, first_offset, now_ms)
        for start, end, run in _runs(log, found, now_ms):
            markers = list(_markers(view[start:end], run))
            aborts = any(each is not None and not each.committed for each in markers)
            aborted_file = log.segments.active.txn_index.open() if aborts else None
            log.segments.active.append_run(view[start:end], run)
            log.end_offset = run[-1].next_offset
            for header, marker in zip(run, markers, strict=True):
                if header.leader_epoch >= 0 and header.leader_epoch != log.leader_epoch:
                    log.assign_epoch(header.leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    log.note_producer(header, marker, now_ms, aborted_file)
    return Appended(
        first_offset,
        log.end_offset - 1,
        log_append_time=-1,
        log_start_offset=log.log_start_offset,
        duplicate=False,
        flush_due=log.flush_due,
    )


def _begin_within(log: PartitionLog, base_offset: int, now_ms: int) -> None:
    """Start an empty log with a batch whose first records were deleted.

    The log start offset does not change. The recovery point on the disk may lie inside the batch:
    recovery checks the segment that has it, which is the first.
    """
    log_start_offset = log.log_start_offset
    truncate_fully_and_start_at(log, base_offset, now_ms)
    log.log_start_offset = log.high_watermark = log_start_offset


def _runs(
    log: PartitionLog, found: list[tuple[int, BatchHeader]], now_ms: int
) -> Iterator[tuple[int, int, list[BatchHeader]]]:
    """Start, end and headers of each run of batches for one segment, which is active by then."""
    run: list[BatchHeader] = []
    start = end = 0
    for position, header in found:
        size = position + header.size_bytes - start
        if run and not log.roll_rules.fits(log.segments.active, header.last_offset, size):
            yield start, end, run
            run = []
        if not run:
            start = position
            if log.roll_rules.is_due(
                log.segments.active,
                last_offset=header.last_offset,
                size=header.size_bytes,
                timestamp=header.max_timestamp,
                now_ms=now_ms,
            ):
                log.roll(now_ms, header.base_offset)
        run.append(header)
        end = position + header.size_bytes
    yield start, end, run


def _markers(run: memoryview, headers: list[BatchHeader]) -> Iterator[EndTransactionMarker | None]:
    """The marker of each batch of a run; None for a batch that is not a marker."""
    position = 0
    for header in headers:
        ends = header.is_control and header.producer_id >= 0
        yield marker_in(run[position:], header) if ends else None
        position += header.size_bytes


class OffsetsOutOfOrder(KafkaError):
    """A follower was given batches that do not follow its log's end."""


def checked_batches(
    view: memoryview, next_offset: int, *, is_empty: bool
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch that a leader sent, from `next_offset` on.

    An empty log accepts a first batch that begins before `next_offset` and ends after it:
    DeleteRecords may move the start of the leader's log into a batch, and batches are sent whole.
    """
    for position, header in batches(view):
        if not crc_matches(view, header, position):
            raise CorruptBatch(f"batch at offset {header.base_offset} does not match its CRC")
        if is_empty and position == 0 and header.last_offset >= next_offset:
            next_offset = min(next_offset, header.base_offset)
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise OffsetsOutOfOrder(
                f"a batch begins at offset {header.base_offset}, the log ends at {next_offset}"
            )
        next_offset = header.next_offset
        yield position, header
