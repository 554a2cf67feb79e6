"""Compaction end to end: a log on the disk, the other process, the swap, the checkpoint."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.checkpoint import read_offsets
from penstock.log.compaction import child
from penstock.log.compaction import compactor as compactor_module
from penstock.log.compaction.child import CleaningProcess
from penstock.log.compaction.compactor import RETRY_MS, Compactor
from penstock.log.compaction.job import Answer, CleaningJob, Died, Failed, Finished, SegmentSize
from penstock.log.compaction.pace import Pace
from penstock.log.compaction.process import answers as process_answers
from penstock.log.disk import DiskFiles
from penstock.log.log_dir import CLEANER_OFFSETS, LogDir
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.recovery import load_log
from penstock.record.batch import batches, read_header
from penstock.record.build import build_batch
from penstock.record.record import Record, records
from penstock.testing.files import FakeFiles
from penstock.testing.logs import LogRig
from penstock.types import TopicPartition

PARTITION = TopicPartition("t", 0)
CONFIG = TopicConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.3)
NOW = 1_000_000


class FixedClock:
    monotonic = NOW

    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> int:
        return self.monotonic


def open_log(
    folder: Path, partition: TopicPartition = PARTITION, beside: PartitionLog | None = None
) -> PartitionLog:
    """Logs of one compactor share their directory's object and lock: pass one as `beside`."""
    path = folder / str(partition)
    path.mkdir(exist_ok=True)
    return load_log(
        DiskFiles(),
        beside.log_dir if beside else LogDir(DiskFiles(), folder),
        path,
        partition,
        CONFIG,
        open_segments=OpenSegments(),
        recovery_point=0,
        log_start_offset=0,
        clean=False,
        now_ms=NOW,
    )


def append(log: PartitionLog, *pairs: tuple[str, str]) -> None:
    made = [
        Record(n, NOW, key.encode(), value.encode(), []) for n, (key, value) in enumerate(pairs)
    ]
    batch = build_batch(made)
    log.append_as_leader(batch, read_header(batch), 0, NOW)
    log.advance_high_watermark(log.end_offset)


def contents(log: PartitionLog) -> list[tuple[int, str]]:
    found = []
    offset = log.log_start_offset
    while (piece := log.read(offset, 1 << 20, up_to=log.end_offset)) is not None:
        data = piece.read()
        for at, header in batches(data):
            offset = header.next_offset
            found += [
                (record.offset, (record.value or b"").decode())
                for record in records(data[at : at + header.size_bytes], header, 1 << 20)
            ]
    return found


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    log = open_log(tmp_path)
    append(log, ("a", "1"), ("b", "1"))
    append(log, ("a", "2"))
    log.roll(NOW)
    append(log, ("b", "2"))
    log.roll(NOW)
    append(log, ("a", "3"))
    log.flush()
    return log


def cleaned(*logs: PartitionLog) -> tuple[list[bool], Compactor]:
    """Clean until no log is worth cleaning."""

    async def run() -> tuple[list[bool], Compactor]:
        compactor = Compactor(DiskFiles(), lambda: logs, FixedClock(), StorageConfig)
        process, outcomes = CleaningProcess(), list[bool]()
        while not outcomes or outcomes[-1]:
            outcomes.append(await compactor.clean_dirtiest(process))
        await process.close()
        return outcomes, compactor

    return asyncio.run(run())


def test_the_broker_compacts_a_log_through_another_process(
    log: PartitionLog, tmp_path: Path
) -> None:
    outcomes, _ = cleaned(log)
    assert outcomes == [True, False]
    assert contents(log) == [(2, "2"), (3, "2"), (4, "3")]
    assert read_offsets(DiskFiles(), tmp_path / CLEANER_OFFSETS) == {PARTITION: 4}
    assert contents(open_log(tmp_path)) == contents(log)


def test_a_damaged_log_is_left_alone_and_reported(log: PartitionLog) -> None:
    path = log.segments.first.path()
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    outcomes, compactor = cleaned(log)
    assert outcomes == [True, False]
    assert "wrong CRC at byte 0" in compactor.uncleanable[PARTITION]


@pytest.mark.parametrize(("byte", "why"), [(16, "no batch"), (0, "has a batch at offset 915")])
def test_a_damaged_header_in_one_log_does_not_stop_the_others(
    log: PartitionLog, tmp_path: Path, byte: int, why: str
) -> None:
    damaged = open_log(tmp_path, TopicPartition("damaged", 0), beside=log)
    # Because of a lag, the broker itself reads timestamps: it notices the magic, the cleaning
    # process the offset.
    damaged.config = replace(CONFIG, max_compaction_lag_ms=1)
    for value in "12":
        append(damaged, ("a", value))
        damaged.roll(NOW)
    damaged.flush()
    damaged.release()
    path = damaged.segments.first.path()
    data = bytearray(path.read_bytes())
    data[byte] = 0x7F  # in the magic or the offset, which no CRC covers
    path.write_bytes(data)
    damaged.segments.first._first_timestamp = damaged.segments.first._newest = None  # a restart
    outcomes, compactor = cleaned(damaged, log)
    assert not outcomes[-1]
    assert contents(log) == [(2, "2"), (3, "2"), (4, "3")]
    assert why in compactor.uncleanable[damaged.topic_partition]


def test_a_log_that_met_a_full_disk_is_tried_again(log: PartitionLog) -> None:
    clock = FixedClock()
    compactor = Compactor(DiskFiles(), lambda: [log], clock, StorageConfig)
    compactor._failed(log, job(log), Failed("No space left (ENOSPC)", is_damage=False))
    assert compactor.uncleanable == {}
    assert not compactor._is_compacted(log)
    clock.monotonic += RETRY_MS
    assert compactor._is_compacted(log)


def test_a_new_log_does_not_inherit_the_error_of_a_deleted_one(log: PartitionLog) -> None:
    compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig)
    log.segments.home.is_gone = True
    compactor._failed(log, job(log), Failed("no such file", is_damage=False))
    compactor._failed(log, job(log), Failed("damaged", is_damage=True))
    for _ in range(3):
        compactor._died(log, -9)
    assert compactor.uncleanable == {}
    assert not compactor._is_compacted(log)
    log.segments.home.is_gone = False  # as that of a new log of this name
    assert compactor._is_compacted(log)


def test_a_truncated_log_is_retried(log: PartitionLog) -> None:
    compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig)
    compactor._failed(log, job(log), Failed("damaged", is_damage=True))
    assert not compactor._is_compacted(log)
    compactor.truncated(log, 0)
    assert compactor._is_compacted(log)


def test_a_full_disk_is_not_damage_and_leaves_no_files_behind() -> None:
    files = FakeFiles()
    rig = LogRig(CONFIG, files)
    for value in b"12":
        batch = build_batch([Record(0, NOW, b"k", bytes([value]), [])])
        rig.append(batch)
        rig.log.roll(NOW)
    work = job(rig.log)
    files.fail_next("sync", errno.ENOSPC)
    [reported] = process_answers(files, work)
    assert isinstance(reported, Failed)
    assert not reported.is_damage
    assert "ENOSPC" in reported.reason
    assert not any(name.endswith(".cleaned") for name in files.names(rig.log.path))


def test_without_a_cleaner_nothing_is_compacted_and_threads_share_what_there_is(
    log: PartitionLog,
) -> None:
    def compactor(**settings: Any) -> Compactor:
        return Compactor(
            DiskFiles(), lambda: [log], FixedClock(), lambda: StorageConfig(**settings)
        )

    assert compactor(log_cleaner_enable=False, log_cleaner_threads=3).threads == 0
    both = compactor(log_cleaner_threads=2, log_cleaner_io_max_bytes_per_second=1000.0)
    assert both.threads == 2
    half = both.job_for(log, NOW)
    assert (half.io_bytes_per_second, half.io_buffer_bytes) == (500.0, 262_144)
    whole = compactor().job_for(log, NOW)
    assert half.dedupe_buffer_bytes == whole.dedupe_buffer_bytes // 2
    assert whole.dedupe_buffer_bytes == int(134_217_728 * 0.9)


def test_two_threads_clean_two_logs_at_once(log: PartitionLog, tmp_path: Path) -> None:
    other = open_log(tmp_path, TopicPartition("other", 0), beside=log)
    for value in "12":
        append(other, ("a", value))
        other.roll(NOW)
    other.flush()

    async def run() -> None:
        compactor = Compactor(
            DiskFiles(),
            lambda: [log, other],
            FixedClock(),
            lambda: StorageConfig(log_cleaner_threads=2, log_cleaner_backoff_ms=10),
        )
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            task = tasks.create_task(compactor.run())
            while len(compactor._being_cleaned) < 2:
                await asyncio.sleep(0)
            while len(contents(log)) > 3 or len(contents(other)) > 1:
                await asyncio.sleep(0.01)
            task.cancel()

    asyncio.run(run())
    assert contents(other) == [(1, "2")]


def test_a_cleaner_without_progress_is_killed(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LEAST_PATIENCE_S", 0)
    monkeypatch.setattr(child, "SLOWEST_BYTES_PER_SECOND", 1 << 40)

    async def run() -> None:
        process = CleaningProcess()
        assert await answers(process, job(log)) == [Died(-9)]

    asyncio.run(run())


def test_the_timeout_of_a_job_grows_with_its_bytes(log: PartitionLog) -> None:
    work = job(log)
    assert child.patience_s(work) == 60 + 4 * work.size_bytes / (1 << 20)
    slow = msgspec.structs.replace(work, io_bytes_per_second=10.0)
    assert child.patience_s(slow) == 60 + 4 * work.size_bytes / 10


def test_the_pace_sleeps_to_keep_the_rate() -> None:
    clock, rests = FixedClock(), list[float]()
    pace = Pace(1_000, clock, rests.append)
    pace.passed(10)
    assert rests == []
    pace.passed(90)
    assert rests == [pytest.approx(0.1)]
    clock.monotonic += 100
    pace.passed(5)
    assert len(rests) == 1


def test_a_truncated_log_is_dirty_from_that_segment_on(log: PartitionLog, tmp_path: Path) -> None:
    _, compactor = cleaned(log)
    compactor.truncated(log, 4)
    assert read_offsets(DiskFiles(), tmp_path / CLEANER_OFFSETS) == {PARTITION: 4}
    compactor.truncated(log, 3)
    assert read_offsets(DiskFiles(), tmp_path / CLEANER_OFFSETS) == {PARTITION: 0}
    compactor.truncated(log, 4)
    assert read_offsets(DiskFiles(), tmp_path / CLEANER_OFFSETS) == {PARTITION: 0}


def test_a_failed_directory_does_not_stop_the_compactor(log: PartitionLog) -> None:
    log.log_dir.fail(StorageError("the disk is gone"))
    assert cleaned(log)[0] == [False]


def test_a_log_that_kills_its_process_repeatedly_is_left_alone(log: PartitionLog) -> None:
    compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig)
    for _ in range(2):
        compactor._died(log, -9)
    assert compactor.uncleanable == {}
    compactor._died(log, -9)
    assert PARTITION in compactor.uncleanable
    assert not asyncio.run(compactor.clean_dirtiest(CleaningProcess()))


def test_a_completed_cleaning_resets_the_count_of_killed_processes(
    log: PartitionLog,
) -> None:
    async def run() -> Compactor:
        compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig)
        process = CleaningProcess()
        for _ in range(2):
            compactor._died(log, -9)
        assert await compactor.clean_dirtiest(process)
        await process.close()
        return compactor

    compactor = asyncio.run(run())
    compactor._died(log, -9)
    assert compactor.uncleanable == {}


def test_logs_are_weighed_without_opening_their_segments() -> None:
    """There may be thousands, and only a maximum lag or a minimum one depends on their times."""
    rig = LogRig(TopicConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0))
    for _ in range(3):
        batch = build_batch([Record(0, NOW, b"k", b"v", [])])
        rig.append(batch)
        rig.log.roll(NOW)
    rig.restart()
    rig.log.set_high_watermark(rig.log.end_offset)
    compactor = Compactor(rig.files, lambda: [rig.log], FixedClock(), StorageConfig)
    before = rig.fake.operations
    assert not asyncio.run(compactor.clean_dirtiest(CleaningProcess()))
    assert rig.fake.operations - before <= 1  # the checkpoint


def test_a_log_that_is_truncated_while_others_are_weighed_is_weighed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """New records at the old offsets are not committed: they must not remove older ones."""
    monkeypatch.setattr(compactor_module, "LOGS_A_TURN", 1)
    rig = LogRig(CONFIG)
    asked: list[CleaningJob] = []

    def append(leader_epoch: int) -> None:
        for _ in range(3):
            rig.append(build_batch([Record(0, NOW, b"k", b"v", [])]), leader_epoch)
            rig.log.roll(NOW)
        rig.log.flush()

    class Process:
        async def clean(self, job: CleaningJob) -> AsyncGenerator[Answer]:
            asked.append(job)
            yield Finished(0, 0, 0)

    async def scenario() -> None:
        compactor = Compactor(rig.files, lambda: [rig.log], FixedClock(), StorageConfig)
        process = cast("CleaningProcess", Process())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(compactor.clean_dirtiest(process))
            await asyncio.sleep(0)
            rig.store.truncate({rig.log.topic_partition: 1})
            append(1)

    append(0)
    rig.log.set_high_watermark(3)
    asyncio.run(scenario())
    assert rig.log.high_watermark == 1
    assert [each.first_uncleanable for each in asked] == [1]


def job(log: PartitionLog) -> CleaningJob:
    return CleaningJob(
        directory=str(log.path),
        segments=[SegmentSize(each.base_offset, each.size_bytes) for each in log.segments][:-1],
        first_dirty=0,
        first_uncleanable=log.segments.active.base_offset,
        producers=[],
        now_ms=NOW,
        delete_retention_ms=0,
        segment_bytes=1 << 20,
        segment_index_bytes=1 << 20,
        index_interval_bytes=4096,
    )


async def answers(process: CleaningProcess, job: CleaningJob) -> list[Answer]:
    return [answer async for answer in process.clean(job)]


def test_a_killed_process_is_reported_and_the_next_job_starts_another(log: PartitionLog) -> None:
    async def run() -> None:
        process = CleaningProcess()
        assert isinstance((await answers(process, job(log)))[-1], Finished)
        assert process.pid is not None
        first = process.pid
        process.kill()
        assert await answers(process, job(log)) == [Died(-9)]
        assert isinstance((await answers(process, job(log)))[-1], Finished)
        assert process.pid != first
        await process.close()

    asyncio.run(run())


def test_answers_of_an_abandoned_job_are_not_mixed_with_the_next(log: PartitionLog) -> None:
    async def run() -> None:
        process = CleaningProcess()
        stream = process.clean(job(log))
        await anext(stream)
        await stream.aclose()
        assert len(await answers(process, job(log))) == 2
        await process.close()

    asyncio.run(run())


def test_the_process_ends_when_the_broker_does(log: PartitionLog) -> None:
    async def run() -> int | None:
        process = CleaningProcess()
        await answers(process, job(log))
        return await process.close()

    assert asyncio.run(run()) == 0


def test_a_process_whose_broker_was_killed_ends_silently(log: PartitionLog) -> None:
    """It may notice while it answers, before the end of its input."""
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "penstock.log.compaction.process"],
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writing)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(msgspec.json.encode(job(log)) + b"\n")
        process.stdin.flush()
        assert (process.wait(60), process.stderr.read()) == (0, b"")
