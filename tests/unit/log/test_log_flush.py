"""Flushes, checkpoints and upkeep: what is written to disk, and when."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import current_thread
from typing import cast

import pytest

from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log import upkeep as upkeep_module
from penstock.log.compaction.job import CleanedGroup, SegmentSize
from penstock.log.compaction.swap import swap_in
from penstock.log.files import LogFile, remove_flat_dir
from penstock.log.flush import MAX_RUNNING, Flush, Flusher
from penstock.log.log_dir import LogDirOffline
from penstock.log.old_segments import delete_old_segments
from penstock.log.partition_log import PartitionLog
from penstock.log.upkeep import Upkeep
from penstock.record.batch import CorruptBatch, read_header
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig, batch_of
from penstock.types import TopicPartition


class Loop:
    """Runs what the flusher's threads deliver one call at a time, in place of an event loop."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run_one(self) -> None:
        self.calls.get(timeout=10)()


def test_requests_during_a_sync_share_the_next_one() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    first = flusher.request(rig.log)
    rig.append(batch_of(b"b"))
    later = [flusher.request(rig.log) for _ in range(5)]
    loop.run_one()
    assert first.result() == 1
    assert not any(future.done() for future in later)
    loop.run_one()
    assert [future.result() for future in later] == [2] * 5
    assert loop.calls.empty()
    assert rig.log.recovery_point == 2
    flusher.close()


def test_a_waiter_that_gives_up_does_not_disturb_the_others() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    given_up, other = flusher.request(rig.log), flusher.request(rig.log)
    given_up.cancel()  # as a cancelled task would
    loop.run_one()
    loop.run_one()
    assert other.result() == 1
    flusher.close()


def test_a_flush_that_ends_after_the_close_begins_no_other() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    first, other = flusher.request(rig.log), flusher.request(rig.log)
    flusher.close()
    loop.run_one()
    assert first.result() == 1
    assert not other.done()


def test_after_a_failed_sync_every_waiter_fails() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    rig.fake.fail_next("sync", errno.EIO)
    first = flusher.request(rig.log)
    second = flusher.request(rig.log)
    loop.run_one()
    for future in (first, second):
        with pytest.raises(StorageError, match="EIO"):
            future.result()
    with pytest.raises(LogDirOffline):
        flusher.request(rig.log).result()
    assert rig.log.recovery_point == 0
    assert rig.offline == [(rig.dirs[0], [PARTITION])]
    flusher.close()


class OneOfMany:
    """One of many logs; those of an offline directory cannot be flushed."""

    def __init__(self, rig: LogRig, *, offline: bool = False) -> None:
        self._rig, self._offline = rig, offline

    def begin_flush(self) -> Flush:
        if self._offline:
            raise LogDirOffline("gone")
        return self._rig.log.begin_flush()

    def flushed(self, flush: Flush) -> None:
        pass

    def fail(self, error: StorageError) -> None:
        raise error


def test_logs_that_cannot_be_flushed_do_not_block_others() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    for _ in range(MAX_RUNNING):
        flusher.request(OneOfMany(rig))
    gone = [flusher.request(OneOfMany(rig, offline=True)) for _ in range(MAX_RUNNING**2)]
    last = flusher.request(OneOfMany(rig))
    for _ in range(MAX_RUNNING + 1):
        loop.run_one()
    assert last.result() == 0
    assert all(isinstance(future.exception(), LogDirOffline) for future in gone)
    flusher.close()


def test_a_bug_in_a_flush_is_raised_to_its_waiters() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))

    def broken() -> None:
        raise RuntimeError("a bug")

    rig.log.segments.active.file.sync = broken  # type: ignore[method-assign]
    waits = flusher.request(rig.log)
    with pytest.raises(RuntimeError):
        loop.run_one()
    assert isinstance(waits.exception(timeout=0), RuntimeError)
    flusher.run(broken, lambda _: None)
    with pytest.raises(RuntimeError):
        loop.run_one()
    flusher.close()


def test_a_log_that_is_deleted_during_a_flush_does_no_harm() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"a"))
    flush = rig.log.begin_flush()
    log = rig.log
    rig.store.delete(PARTITION)
    for name in rig.files.names(log.path):
        rig.files.remove(log.path / name)
    rig.files.remove_dir(log.path)
    flush.run()
    assert rig.offline == []
    flusher.close()


@pytest.mark.row("A104")
def test_flush_ms_and_rolls_lead_to_a_flush() -> None:
    rig, loop = LogRig(TopicConfig(flush_ms=1_000, segment_bytes=100)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    rig.log.last_flush_ms = 500
    rig.append(batch_of(b"a"))
    upkeep.tick(1_499, 1_499)
    assert loop.calls.empty()
    upkeep.tick(1_500, 1_500)
    loop.run_one()
    assert rig.log.recovery_point == 1
    rig.append(batch_of(b"b" * 100))
    upkeep.tick(1_501, 1_501)
    loop.run_one()
    assert rig.log.recovery_point == 2
    flusher.close()


def test_checkpoints_are_written_in_their_intervals_and_survive_a_crash() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    upkeep.tick(0, 0)
    for _ in range(9):
        rig.append(batch_of(b"x"))
    rig.log.advance_high_watermark(6)
    rig.log.flush()
    upkeep.tick(4_999, 4_999)
    upkeep.tick(5_000, 5_000)
    upkeep.tick(60_000, 60_000)
    flusher.close()
    log_dir = rig.store.dirs[0]
    assert log_dir.checkpoints.read("recovery-point-offset-checkpoint") == {PARTITION: 9}
    rig.crash()
    assert rig.log.high_watermark == 6


def test_an_older_checkpoint_does_not_undo_a_newer_one() -> None:
    rig = LogRig()
    log_dir = rig.store.dirs[0]
    older = log_dir.checkpoints.writer("recovery-point-offset-checkpoint", {PARTITION: 100})
    log_dir.checkpoints.writer("recovery-point-offset-checkpoint", {PARTITION: 50})()
    older()
    assert log_dir.checkpoints.read("recovery-point-offset-checkpoint") == {PARTITION: 50}


def test_upkeep_applies_retention_and_removes_deleted_segments() -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, retention_ms=1)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    for _ in range(5):
        rig.append(batch_of(b"x" * 50))
    rig.log.advance_high_watermark(5)
    upkeep.tick(0, 0)
    upkeep.tick(300_000, 300_000)
    assert len(rig.log.segments) == 1
    assert any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))
    upkeep.tick(301_000, 301_000)
    upkeep.tick(361_000, 361_000)
    flusher.close()  # waits for the removal on its threads
    assert not any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))


def test_a_log_removed_while_it_is_queued_does_not_fail_the_disk() -> None:
    """Queued for retention, which checks a few logs per second; for a flush behind many others; or
    for compaction, whose process has just answered.
    """
    rig, loop = LogRig(TopicConfig(retention_ms=1)), Loop()
    flusher = Flusher(loop.calls.put)
    rig.append(batch_of(b"x"))
    rig.log.advance_high_watermark(1)
    rig.log.roll(0)
    rig.restart()
    log = rig.log
    cleaned = CleanedGroup([SegmentSize(0, log.segments.first.size_bytes)], 0)
    rig.append(batch_of(b"y"))
    rig.store.delete(PARTITION)
    remove_flat_dir(rig.files, log.path)
    assert delete_old_segments(log, 1_000_000) == 0
    flushed = flusher.request(log)
    loop.run_one()
    assert flushed.exception() is None
    assert not swap_in(rig.files, log, cleaned, 0)
    assert rig.offline == []
    flusher.close()


def test_idle_producers_expire() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, lambda: StorageConfig(producer_id_expiration_ms=1_000_000))
    rig.append(batch_of(b"x", producer_id=1, sequence=0, timestamp=0))
    upkeep.tick(0, 0)
    upkeep.tick(600_000, 600_000)
    assert 1 in rig.log.producers.producers
    upkeep.tick(1_200_000, 1_200_000)
    assert 1 not in rig.log.producers.producers
    flusher.close()


def test_a_wall_clock_that_is_set_back_stops_no_interval() -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, retention_ms=1, flush_ms=1_000)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    day = 86_400_000
    upkeep.tick(10 * day, 0)
    upkeep.tick(10 * day + 600_000, 600_000)
    for _ in range(5):
        rig.append(batch_of(b"x" * 50))
    rig.log.advance_high_watermark(5)
    back = 9 * day
    upkeep.tick(back, 900_000)
    loop.run_one()
    assert rig.log.recovery_point == 5
    assert len(rig.log.segments) == 1
    upkeep.tick(back + 1_000, 901_000)
    upkeep.tick(back + 61_000, 961_000)
    flusher.close()  # waits for the removal on its threads
    assert not any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))
    log_dir = rig.store.dirs[0]
    assert log_dir.checkpoints.read("recovery-point-offset-checkpoint") == {PARTITION: 5}
    assert log_dir.checkpoints.read("replication-offset-checkpoint") == {PARTITION: 5}


def test_high_watermarks_are_written_in_the_configured_interval() -> None:
    rig, loop = LogRig(), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig, high_watermark_interval_ms=50_000)
    upkeep.tick(0, 0)
    rig.append(batch_of(b"x"))
    rig.log.advance_high_watermark(1)
    upkeep.tick(49_999, 49_999)
    flusher.close()
    assert rig.store.dirs[0].checkpoints.read("replication-offset-checkpoint") == {}
    flusher = Flusher(loop.calls.put)
    upkeep._flusher = flusher
    upkeep.tick(50_000, 50_000)
    flusher.close()
    assert rig.store.dirs[0].checkpoints.read("replication-offset-checkpoint") == {PARTITION: 1}


def test_the_first_retention_check_comes_after_the_initial_delay() -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, retention_ms=1)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, lambda: StorageConfig(log_initial_task_delay_ms=7))
    for _ in range(5):
        rig.append(batch_of(b"x" * 50))
    rig.log.advance_high_watermark(5)
    upkeep.tick(100, 0)
    upkeep.tick(106, 6)
    assert len(rig.log.segments) == 5
    upkeep.tick(107, 7)
    assert len(rig.log.segments) == 1
    flusher.close()


@pytest.mark.pure
def test_a_failing_log_does_not_stop_the_upkeep_of_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, retention_ms=1)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    other = rig.store.create(TopicPartition("orders", 1), TOPIC_ID, 0)
    for _ in range(5):
        batch = batch_of(b"x" * 50)
        other.append_as_leader(batch, read_header(batch), 0, 0)
    other.advance_high_watermark(5)

    def refuse(log: PartitionLog, now_ms: int, most: int) -> int:
        if log is not rig.log:
            return delete_old_segments(log, now_ms, most)
        raise CorruptBatch(f"no batch begins there at {now_ms}")

    monkeypatch.setattr(upkeep_module, "delete_old_segments", refuse)
    upkeep.tick(0, 0)
    upkeep.tick(600_000, 600_000)
    assert len(other.segments) == 1
    assert "orders-0: old segments stay: no batch begins there" in caplog.text
    flusher.close()


def test_very_many_old_segments_are_deleted_a_few_at_a_time_and_no_log_waits_for_another() -> None:
    """A producer that sends timestamps of fifty years, a week apart, makes thousands of them."""
    rig, loop = LogRig(TopicConfig(segment_ms=1, retention_ms=1_000)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    other = rig.store.create(TopicPartition("orders", 1), TOPIC_ID, 0)
    for log in (rig.log, other):
        for number in range(50):
            batch = batch_of(b"x", timestamp=10 * number)
            log.append_as_leader(batch, read_header(batch), 0, 0)
        log.advance_high_watermark(50)
    upkeep.tick(0, 0)
    left = []
    has_more = upkeep.tick(600_000, 600_000)
    while has_more:
        left.append((len(rig.log.segments), len(other.segments)))
        has_more = upkeep.retain(600_000)
    flusher.close()
    assert left == [(30, 50), (30, 30), (10, 30), (10, 10), (1, 1)]
    assert (rig.log.log_start_offset, other.log_start_offset) == (50, 50)


@pytest.mark.parametrize("is_copy", [False, True])
def test_files_of_truncated_segments_are_removed_beside_the_loop(*, is_copy: bool) -> None:
    """A follower that is far behind drops its whole log, of hundreds of large files."""
    rig, loop = LogRig(TopicConfig(segment_bytes=100)), Loop()
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    for _ in range(5):
        rig.append(batch_of(b"x" * 50))
    log = rig.log
    if is_copy:
        rig.store.future_logs[PARTITION] = rig.store.logs.pop(PARTITION)

    def deleted() -> int:
        return len([each for each in rig.files.names(log.path) if each.endswith(".log.deleted")])

    rig.store.truncate({PARTITION: 2})
    assert (len(log.segments), deleted()) == (3, 2)
    rig.store.truncate_fully(PARTITION, 100, 0)
    assert (log.segments.first.base_offset, len(log.segments), deleted()) == (100, 1, 5)
    upkeep.tick(0, 0)
    flusher.close()  # waits for the removal on its threads
    assert deleted() == 0


def test_a_damaged_segment_is_as_old_as_its_file() -> None:
    rig = LogRig(TopicConfig(segment_bytes=100, retention_ms=1_000))
    rig.fake.now_ms = 5_000
    for _ in range(5):
        rig.append(batch_of(b"x" * 50, timestamp=4_000))
    rig.flush()
    path = rig.log.segments.first.path()
    rig.store.close()
    rig.fake.flip_bit(path, 16 * 8)  # the magic of its first batch
    for suffix in (".index", ".timeindex"):
        rig.files.remove(path.with_suffix(suffix))
    rig.store = rig._open_store()
    rig.log.set_high_watermark(5)
    assert delete_old_segments(rig.log, 6_000) == 0
    assert delete_old_segments(rig.log, 6_001) == 5


def test_a_log_can_be_moved_while_its_files_are_synced() -> None:
    """The loop renames the directory; it must not wait for a sync on another thread."""
    rig = LogRig()
    rig.append(batch_of(b"a"))
    flush = rig.log.begin_flush()

    class Slow:
        path = rig.log.path

        def sync(self) -> None:
            assert not rig.log.segments.home.in_use.locked()

    replace(flush, handles=(cast("LogFile", Slow()),)).run()


def test_files_of_deleted_segments_are_removed_on_the_flushers_threads() -> None:
    rig, loop = LogRig(TopicConfig(segment_bytes=100, file_delete_delay_ms=0)), Loop()
    threads: list[str] = []
    flusher = Flusher(loop.calls.put)
    upkeep = Upkeep(rig.store, flusher, StorageConfig)
    for value in (b"a", b"b", b"c"):
        rig.append(batch_of(value * 50))
    rig.log.set_high_watermark(3)
    rig.log.maybe_increment_log_start(2)
    delete_old_segments(rig.log, 0)
    removal = rig.files.remove

    def remove(path: Path) -> None:
        threads.append(current_thread().name)
        removal(path)

    rig.fake.remove = remove  # type: ignore[method-assign]
    upkeep.tick(10**6, 10**6)
    flusher.close()
    assert threads
    assert all(name.startswith("flush") for name in threads)
