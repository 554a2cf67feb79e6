"""What `cleaner-offset-checkpoint` marks as clean is clean, despite crashes and truncations.

A clean tombstone is removed after a while. If an older value of its key were still in the log, that
value would come back to life.
"""

import asyncio
from collections.abc import AsyncGenerator
from itertools import islice
from pathlib import Path
from typing import cast

from penstock.clock import SystemClock
from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.log.compaction.child import CleaningProcess
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.job import Answer, CleanedGroup, CleaningJob, Finished
from penstock.log.compaction.swap import swap_in
from penstock.log.log_dir import CLEANER_OFFSETS
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.testing.files import FakeFiles
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig
from penstock.types import TopicPartition

CONFIG = TopicConfig(cleanup_policy=("compact",), delete_retention_ms=100, segment_bytes=200)


def started() -> LogRig:
    rig = LogRig(CONFIG)
    rig.flush()
    return rig


def append(rig: LogRig, *pairs: tuple[bytes, bytes | None]) -> None:
    rig.append(build_batch([Record(n, 0, key, value, []) for n, (key, value) in enumerate(pairs)]))


def compactor_of(rig: LogRig) -> Compactor:
    return Compactor(rig.files, lambda: [rig.log], SystemClock(), StorageConfig)


def compact(rig: LogRig, now_ms: int = 0, *, groups: int = 99) -> None:
    """Clean what may be cleaned; only `groups` of the new segments are swapped in."""
    rig.log.advance_high_watermark(rig.log.end_offset)
    compactor = compactor_of(rig)
    job = compactor.job_for(rig.log, now_ms)
    if job.first_dirty == job.first_uncleanable:
        return
    for answer in islice(clean(rig.files, job), groups):
        match answer:
            case CleanedGroup():
                assert swap_in(rig.files, rig.log, answer, now_ms)
            case Finished(cleaned_to):
                compactor.note_cleaned(rig.log, cleaned_to)()


def compact_until_tombstones_go(rig: LogRig) -> None:
    for now_ms in (0, 200, 400):
        append(rig, (b"other", b"v"))
        rig.log.roll(0)
        rig.log.flush()
        compact(rig, now_ms)


def test_a_crash_after_the_mark_does_not_restore_cleaned_records() -> None:
    rig = started()
    append(rig, (b"k", b"old"))
    append(rig, (b"k", None))
    rig.log.roll(0)
    rig.log.flush()
    compact(rig)
    assert rig.log.log_dir.checkpoints.read(CLEANER_OFFSETS) == {PARTITION: 2}
    rig.crash()
    assert rig.read_all() == [(1, b"")]
    compact_until_tombstones_go(rig)
    assert b"old" not in dict(rig.read_all()).values()


def test_a_value_is_not_dropped_for_a_newer_one_that_a_crash_may_lose() -> None:
    rig = started()
    append(rig, (b"k", b"flushed" * 20))
    rig.log.roll(0)
    rig.log.flush()
    append(rig, (b"k", b"not flushed" * 20))
    rig.log.roll(0)
    compact(rig, groups=1)
    rig.crash(lambda kind, count: count if kind == "names" else 0)
    assert rig.read_all() == [(0, b"flushed" * 20)]


def test_a_cleaning_from_before_a_truncation_does_not_replace_newer_batches() -> None:
    """With records of equal size the segment looks unchanged."""
    rig = started()
    append(rig, (b"k", b"old"))
    append(rig, (b"j", b"truncated"))
    rig.log.roll(0)
    rig.log.flush()
    rig.log.advance_high_watermark(2)
    answers = list(clean(rig.files, compactor_of(rig).job_for(rig.log, 0)))
    size_bytes = rig.log.segments.first.size_bytes
    rig.store.truncate({PARTITION: 1})
    append(rig, (b"j", b"committed"))
    rig.log.roll(0)
    assert rig.log.segments.first.size_bytes == size_bytes
    assert isinstance(answers[0], CleanedGroup)
    assert not swap_in(rig.files, rig.log, answers[0], 0)
    assert rig.read_all() == [(0, b"old"), (1, b"committed")]


def test_a_cleaning_that_ends_after_a_truncation_marks_nothing_as_clean() -> None:
    rig = started()
    append(rig, (b"k", b"old"))
    append(rig, (b"j", b"truncated"))
    rig.log.roll(0)
    rig.log.flush()
    rig.log.advance_high_watermark(2)

    class Process:
        async def clean(self, _job: CleaningJob) -> AsyncGenerator[Answer]:
            compactor.truncated(rig.log, 1)
            rig.store.truncate({PARTITION: 1})
            yield Finished(2, 0, 0)

    compactor = compactor_of(rig)
    assert asyncio.run(compactor.clean_dirtiest(cast("CleaningProcess", Process())))
    assert rig.log.log_dir.checkpoints.read(CLEANER_OFFSETS).get(PARTITION, 0) == 0


def test_a_mark_is_not_written_with_that_of_another_log_before_its_names_are_synced() -> None:
    other = TopicPartition("other", 0)
    is_cleaned, seen = False, list[dict[TopicPartition, int]]()

    class Syncing(FakeFiles):
        """While the first sync after the cleaning takes its time, another topic is deleted."""

        def sync_dir(self, path: Path) -> None:
            if is_cleaned and not seen and path == rig.log.path:
                log_dir = rig.log.log_dir
                compactor.forget(log_dir, [other])
                seen.append(log_dir.checkpoints.read(CLEANER_OFFSETS))
            super().sync_dir(path)

    class Process:
        async def clean(self, job: CleaningJob) -> AsyncGenerator[Answer]:
            nonlocal is_cleaned
            for answer in list(clean(rig.files, job)):
                is_cleaned = True
                yield answer

    rig = LogRig(CONFIG, Syncing())
    append(rig, (b"k", b"old"))
    append(rig, (b"k", None))
    rig.log.roll(0)
    rig.flush()
    rig.log.advance_high_watermark(2)
    rig.log.log_dir.checkpoints.writer(CLEANER_OFFSETS, {other: 7})()
    compactor = compactor_of(rig)
    assert asyncio.run(compactor.clean_dirtiest(cast("CleaningProcess", Process())))
    assert seen == [{}]
    assert rig.log.log_dir.checkpoints.read(CLEANER_OFFSETS) == {PARTITION: 2}


def test_batches_written_after_a_truncation_are_dirty() -> None:
    rig = started()
    append(rig, (b"k", b"old"))
    rig.log.roll(0)
    append(rig, (b"a", b"1"), (b"b", b"1"))
    rig.log.roll(0)
    rig.log.flush()
    compact(rig)
    compactor_of(rig).truncated(rig.log, 2)  # in the middle of the batch, which is removed entirely
    rig.store.truncate({PARTITION: 2})
    append(rig, (b"k", None))
    compact_until_tombstones_go(rig)
    assert b"old" not in dict(rig.read_all()).values()


def test_a_topic_created_again_is_dirty_from_its_first_record() -> None:
    rig = started()
    append(rig, (b"x", b"1"))
    append(rig, (b"x", b"2"))
    rig.log.roll(0)
    rig.log.flush()
    compact(rig)
    rig.store.delete(PARTITION)
    made_by = compactor_of(rig)  # another process: the topic was recreated while it was down
    rig.store.before_create = lambda log_dir, where: made_by.forget(log_dir, [where])
    rig.store.create(PARTITION, TOPIC_ID, 0)
    append(rig, (b"k", b"old"))
    rig.log.roll(0)
    append(rig, (b"k", None))
    compact_until_tombstones_go(rig)
    assert b"old" not in dict(rig.read_all()).values()


def test_a_log_deleted_while_it_is_cleaned_leaves_no_mark_for_its_successor() -> None:
    rig = started()
    compactor, log = compactor_of(rig), rig.log
    rig.store.delete(PARTITION)
    rig.store.create(PARTITION, TOPIC_ID, 0)
    compactor.note_cleaned(log, 2)()
    assert rig.log.log_dir.checkpoints.read(CLEANER_OFFSETS) == {}


def test_a_recreated_log_is_not_uncleanable_any_more() -> None:
    rig = started()
    compactor = compactor_of(rig)
    compactor.uncleanable[PARTITION] = "damaged"
    compactor.forget(rig.log.log_dir, [PARTITION])
    assert compactor.uncleanable == {}
