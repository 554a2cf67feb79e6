"""Compaction end to end: a log on the disk, the other process, the swap, the checkpoint."""

import asyncio
from pathlib import Path

import pytest

from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.checkpoint import read_offsets
from penstock.log.compaction.child import CleaningProcess
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.job import Answer, CleaningJob, Died, Finished, SegmentSize
from penstock.log.files import DiskFiles
from penstock.log.log_dir import CLEANER_OFFSETS, LogDir
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.recovery import load_log
from penstock.record.batch import batches, read_header
from penstock.record.build import build_batch
from penstock.record.record import Record, records
from penstock.types import TopicPartition

PARTITION = TopicPartition("t", 0)
CONFIG = TopicConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.3)
NOW = 1_000_000


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> int:
        return NOW


def open_log(folder: Path) -> PartitionLog:
    path = folder / str(PARTITION)
    path.mkdir(exist_ok=True)
    return load_log(
        DiskFiles(),
        LogDir(DiskFiles(), folder),
        path,
        PARTITION,
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


def cleaned(log: PartitionLog) -> tuple[list[bool], Compactor]:
    """Clean until nothing is worth it."""

    async def run() -> tuple[list[bool], Compactor]:
        compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig())
        outcomes: list[bool] = []
        while not outcomes or outcomes[-1]:
            outcomes.append(await compactor.clean_dirtiest())
        await compactor.close()
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


def test_a_damaged_log_is_left_alone_and_named(log: PartitionLog) -> None:
    path = log.segments.first.path()
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    outcomes, compactor = cleaned(log)
    assert outcomes == [True, False]
    assert "wrong CRC at byte 0" in compactor.uncleanable[PARTITION]


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


def test_a_log_that_kills_its_process_again_and_again_is_left_alone(log: PartitionLog) -> None:
    compactor = Compactor(DiskFiles(), lambda: [log], FixedClock(), StorageConfig())
    for _ in range(2):
        compactor._died(log, -9)
    assert compactor.uncleanable == {}
    compactor._died(log, -9)
    assert PARTITION in compactor.uncleanable
    assert not asyncio.run(compactor.clean_dirtiest())


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


def test_a_killed_process_is_told_and_the_next_job_has_another(log: PartitionLog) -> None:
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


def test_a_job_that_is_let_go_of_does_not_answer_the_next(log: PartitionLog) -> None:
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
