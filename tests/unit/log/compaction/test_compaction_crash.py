"""A crash at any file operation of a compaction leaves each group as before or as after."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.job import CleanedGroup, CleaningJob, SegmentSize
from penstock.log.compaction.swap import swap_in
from penstock.log.log_dir import LogDir
from penstock.log.old_segments import delete_old_segments
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.recovery import load_log
from penstock.log.segment_files import CLEANED, DELETED, LOG, SWAP, offset_path
from penstock.record.batch import batches, read_header
from penstock.record.build import build_batch
from penstock.record.control import build_marker
from penstock.record.record import Record, records
from penstock.testing.files import Choice, FakeFiles, lose_everything
from penstock.types import TopicPartition

DATA = Path("/data")
PARTITION = TopicPartition("t", 0)
CONFIG = TopicConfig(
    cleanup_policy=("compact",),
    file_delete_delay_ms=0,
    index_interval_bytes=100,
    segment_index_bytes=12_000,  # preallocated in memory again for each crash
)
NOW = 1_000_000
PRODUCER = 7


def keep_everything(_kind: str, count: int) -> int:
    return count


def keep_half(_kind: str, count: int) -> int:
    return count // 2


def load(files: FakeFiles, recovery_point: int = 0) -> PartitionLog:
    log = load_log(
        files,
        LogDir(files, DATA),
        DATA / "t-0",
        PARTITION,
        CONFIG,
        open_segments=OpenSegments(),
        recovery_point=recovery_point,
        log_start_offset=0,
        clean=False,
        now_ms=NOW,
    )
    log.advance_high_watermark(log.end_offset)
    return log


def written() -> tuple[FakeFiles, PartitionLog]:
    """Four segments, of which the last is active; all flushed. One transaction is aborted."""
    files = FakeFiles()
    files.make_dir(DATA / "t-0")
    files.sync_dir(Path("/"))
    files.sync_dir(DATA)
    log = load(files)
    for number in range(40):
        if number % 10 == 0:
            log.roll(NOW)
        transactional = number in {12, 13}
        batch = build_batch(
            [Record(n, NOW + n, b"k%d" % ((number + n) % 6), b"v%d" % number, []) for n in (0, 1)],
            producer_id=PRODUCER if transactional else -1,
            producer_epoch=0 if transactional else -1,
            base_sequence=2 * (number - 12) if transactional else -1,
            transactional=transactional,
        )
        log.append_as_leader(batch, read_header(batch), 0, NOW)
        if number == 15:
            marker = build_marker(
                producer_id=PRODUCER,
                producer_epoch=0,
                committed=False,
                coordinator_epoch=0,
                timestamp=NOW,
            )
            log.append_as_leader(marker, read_header(marker), 0, NOW, from_client=False)
    log.flush()
    log.advance_high_watermark(log.end_offset)
    return files, log


def job(log: PartitionLog) -> CleaningJob:
    closed = [SegmentSize(each.base_offset, each.size_bytes) for each in log.segments][:-1]
    return CleaningJob(
        directory=str(log.path),
        segments=closed,
        first_dirty=0,
        first_uncleanable=log.segments.active.base_offset,
        producers=[],
        now_ms=NOW,
        delete_retention_ms=0,
        segment_bytes=closed[0].size_bytes + closed[1].size_bytes,
        segment_index_bytes=1 << 20,
        index_interval_bytes=100,
        io_buffer_bytes=500,
    )


def compact(files: FakeFiles, log: PartitionLog) -> int:
    """Compact, and return the number of groups swapped in; a flush then makes the names durable."""
    groups = 0
    for answer in clean(files, job(log)):
        if isinstance(answer, CleanedGroup):
            assert swap_in(files, log, answer, NOW)
            groups += 1
    log.flush()
    log.segments.remove_deleted(NOW)
    return groups


def read(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Everything that a read_committed reader sees."""
    found = []
    offset = log.log_start_offset
    aborted = log.aborted_between(0, log.end_offset)
    while (piece := log.read(offset, 1 << 20, up_to=log.end_offset)) is not None:
        data = piece.read()
        for at, header in batches(data):
            offset = header.next_offset
            dropped = any(
                txn.producer_id == header.producer_id
                and txn.first_offset <= header.base_offset < txn.last_offset
                for txn in aborted
            )
            if not header.is_control and not dropped:
                found += [
                    (record.offset, record.key, record.value)
                    for record in records(data[at : at + header.size_bytes], header, 1 << 20)
                ]
    return found


def newest(found: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in found}


def states() -> list[list[tuple[int, bytes | None, bytes | None]]]:
    """What a reader sees before the compaction and after each of its groups."""
    files, log = written()
    found = [read(log)]
    for answer in clean(files, job(log)):
        if isinstance(answer, CleanedGroup):
            assert swap_in(files, log, answer, NOW)
            found.append(read(log))
    return found


def operations() -> int:
    files, log = written()
    begun = files.operations
    assert compact(files, log) == 2
    return files.operations - begun


def test_compaction_keeps_the_newest_values_and_drops_the_others() -> None:
    before, *_, after = states()
    assert newest(after) == newest(before)
    assert len(after) < len(before)
    assert set(after) <= set(before)


@pytest.mark.parametrize("choose", [lose_everything, keep_half, keep_everything])
def test_a_crash_at_any_operation_leaves_the_log_as_before_or_as_after(choose: Choice) -> None:
    allowed = states()
    seen = set()
    for number in range(1, operations() + 2):
        files, log = written()
        end_offset, recovery_point = log.end_offset, log.recovery_point
        files.fail_at(files.operations + number, errno.EIO)
        with suppress(StorageError):
            compact(files, log)
        files.crash(choose)
        again = load(files, recovery_point)
        found = read(again)
        assert found in allowed, f"operation {number}"
        assert again.end_offset == end_offset
        names = files.names(DATA / "t-0")
        assert not [name for name in names if name.endswith((CLEANED, SWAP, DELETED))]
        seen.add(allowed.index(found))
    assert {0, len(allowed) - 1} <= seen


def test_a_second_crash_during_recovery_changes_nothing() -> None:
    allowed = states()
    for number in range(1, operations() + 1, 2):
        files, log = written()
        recovery_point = log.recovery_point
        files.fail_at(files.operations + number, errno.EIO)
        with suppress(StorageError):
            compact(files, log)
        files.crash(keep_everything)
        for second in range(1, 12, 2):
            files.fail_at(files.operations + second, errno.EIO)
            with suppress(StorageError):
                load(files, recovery_point)
            files.crash(keep_half)
        assert read(load(files, recovery_point)) in allowed, f"operation {number}"


def test_files_of_an_earlier_cleaning_do_not_make_a_crash_drop_what_was_swapped_in() -> None:
    """It was killed, and began a file where no group of this one begins."""
    allowed = states()
    for number in range(1, operations() + 4):
        files, log = written()
        recovery_point, second = log.recovery_point, list(log.segments)[1].base_offset
        files.open(offset_path(log.path, second, LOG + CLEANED), create=True)
        files.sync_dir(log.path)
        files.fail_at(files.operations + number, errno.EIO)
        with suppress(StorageError):
            compact(files, log)
        files.crash(keep_everything)
        assert read(load(files, recovery_point)) in allowed, f"operation {number}"


def test_a_log_that_changed_meanwhile_is_not_replaced() -> None:
    files, log = written()
    before = read(log)
    first, second, _ = clean(files, job(log))
    assert isinstance(first, CleanedGroup)
    assert isinstance(second, CleanedGroup)
    log.maybe_increment_log_start(log.segments.active.base_offset)
    delete_old_segments(log, NOW)
    assert not swap_in(files, log, first, NOW)
    assert not swap_in(files, log, second, NOW)
    assert read(log) == [row for row in before if row[0] >= log.log_start_offset]
    assert not [name for name in files.names(log.path) if name.endswith((CLEANED, SWAP))]


def test_readers_of_old_segments_continue_after_the_swap() -> None:
    files, log = written()
    piece = log.read(0, 1 << 20, up_to=log.end_offset)
    assert piece is not None
    before = piece.read()
    compact(files, log)
    assert piece.read() == before
