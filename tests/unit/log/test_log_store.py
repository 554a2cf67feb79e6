"""Log directories: where partitions go, how they are deleted, and what a failure takes offline."""

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import ConfigError, ErrorCode, StorageError
from penstock.log.disk import DiskFiles
from penstock.log.files import DirectoryLocked, replace, storage_error
from penstock.log.follower_append import append_as_follower
from penstock.log.loading import load_logs
from penstock.log.log_dir import HIGH_WATERMARKS, LOG_STARTS, LogDirOffline
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogDirNotFound, LogStore, PartitionOffline
from penstock.log.time_search import offset_for_timestamp
from penstock.record.batch import read_header
from penstock.testing.files import FakeFiles
from penstock.testing.logs import PARTITION, ROOT, TOPIC_ID, LogRig, batch_of
from penstock.types import TopicPartition, Uuid

TWO = ("d0", "d1")
ANOTHER_ID = Uuid(bytes(15) + b"2")


def part(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def names(rig: LogRig, directory: str = "d0") -> list[str]:
    return rig.files.names(ROOT / directory)


@pytest.mark.row("A081")
def test_a_new_partition_goes_to_the_directory_with_the_fewest_partitions() -> None:
    rig = LogRig(dirs=TWO)
    for number in range(1, 6):
        rig.store.create(part(number), TOPIC_ID, 0)
    placed = [rig.store.logs[part(n)].log_dir.path.name for n in range(6)]
    assert placed == ["d0", "d1", "d0", "d1", "d0", "d1"]
    chosen = rig.store.create(part(6), TOPIC_ID, 0, path=ROOT / "d1")
    assert chosen.path == ROOT / "d1" / "orders-6"
    with pytest.raises(LogDirNotFound):
        rig.store.create(part(7), TOPIC_ID, 0, path=ROOT / "d2")


def test_new_logs_that_a_thread_creates_go_to_the_directories_with_the_fewest_partitions() -> None:
    rig = LogRig(dirs=TWO)
    wanted = {part(number): TOPIC_ID for number in range(1, 6)}
    assert asyncio.run(rig.store.create_off_loop(wanted, 0, at_once)) == {}
    placed = Counter(log.log_dir.path.name for log in rig.store.logs.values())
    assert placed == {"d0": 3, "d1": 3}
    assert rig.store.topic_ids == wanted | {PARTITION: TOPIC_ID}


def test_a_log_created_while_the_broker_stops_is_synced_by_the_stop() -> None:
    async def cancelled(work: Callable[[], None]) -> None:
        work()
        raise asyncio.CancelledError

    rig = LogRig()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(rig.store.create_off_loop({part(1): TOPIC_ID}, 0, cancelled))
    rig.store.close()
    rig.crash()
    assert rig.store.topic_ids == {PARTITION: TOPIC_ID, part(1): TOPIC_ID}


def test_a_clean_stop_leaves_a_marker_beside_the_checkpoints_and_a_start_removes_it() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    rig.store.close(broker_epoch=5)
    assert rig.files.read(ROOT / "d0" / ".kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":5}'
    assert set(names(rig)) == {
        ".kafka_cleanshutdown",
        ".lock",
        ".penstock_boot_id",
        "log-start-offset-checkpoint",
        "orders-0",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    }
    rig.store = rig._open_store()
    assert ".kafka_cleanshutdown" not in names(rig)
    assert rig.store.dirs[0].owner.was_clean
    rig.append(batch_of(b"y"))
    rig.crash()
    assert not rig.store.dirs[0].owner.was_clean


def test_a_damaged_batch_makes_only_the_stop_of_its_directory_unclean() -> None:
    rig = LogRig(dirs=TWO)
    rig.store.create(part(1), TOPIC_ID, 0)
    rig.append(batch_of(b"x"))
    rig.log.release()  # as happens if very many logs are open
    rig.fake.flip_bit(rig.log.path / f"{0:020d}.log", 8 * 16)  # the magic
    rig.store.close()
    marked = [".kafka_cleanshutdown" in names(rig, each) for each in TWO]
    assert (rig.log.log_dir.path.name, marked) == ("d0", [False, True])


def test_only_another_boot_without_a_clean_stop_loses_the_page_cache() -> None:
    rig = LogRig()
    lost = []
    for boot_id, stop in (("1", LogRig.crash), ("2", LogRig.crash), ("3", LogRig.restart)):
        rig.boot_id = f"boot-{boot_id}"
        stop(rig)
        lost.append(rig.store.dirs[0].owner.lost_page_cache)
    assert lost == [False, True, False]


def test_a_damaged_boot_id_counts_as_that_of_another_boot() -> None:
    rig = LogRig()
    boot = rig.store.dirs[0].path / ".penstock_boot_id"
    rig.crash(damage=lambda: replace(rig.files, boot, b"\xff\xfe"))
    assert rig.store.dirs[0].owner.lost_page_cache


def test_a_log_truncated_by_recovery_may_lack_records() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    rig.append(batch_of(b"y"))
    rig.flush()
    rig.crash()
    assert not rig.store.dirs[0].owner.had_unclean_shutdown
    file = rig.log.path / f"{0:020d}.log"
    rig.crash(damage=lambda: rig.fake.flip_bit(file, 8 * rig.files.size(file) - 1))
    assert rig.log.end_offset == 1
    assert rig.store.dirs[0].owner.had_unclean_shutdown


def test_an_unclean_shutdown_is_remembered_until_it_is_resolved() -> None:
    """However often the broker restarts meanwhile, although its logs look intact after the first
    time.
    """
    rig = LogRig()
    rig.append(batch_of(b"x"))
    rig.boot_id = "boot-2"
    known: list[object] = []
    for stop in (LogRig.crash, LogRig.restart, LogRig.crash, LogRig.restart):
        stop(rig)
        known.append((rig.store.dirs[0].owner.lost_page_cache, rig.store.had_unclean_shutdown))
    assert known == [(True, True), (False, True), (False, True), (False, True)]
    rig.store.clear_unclean_shutdown()
    known = [rig.store.had_unclean_shutdown]
    rig.restart()
    assert [*known, rig.store.had_unclean_shutdown] == [False, False]


def test_a_log_that_ends_before_its_high_watermark_lacks_records() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    rig.log.advance_high_watermark(1)
    rig.flush()

    def emptied() -> None:
        file = rig.files.open(rig.log.path / f"{0:020d}.log")
        file.truncate(0)
        file.sync()

    rig.crash(damage=emptied)
    assert rig.store.dirs[0].owner.had_unclean_shutdown


def test_partition_directory_and_topic_id_are_read_back() -> None:
    rig = LogRig()
    rig.restart()
    assert rig.store.topic_ids == {PARTITION: TOPIC_ID}
    assert rig.log.path == ROOT / "d0" / "orders-0"


def test_a_new_partition_survives_a_crash_once_it_is_flushed() -> None:
    rig = LogRig()
    rig.store.create(part(1), TOPIC_ID, 0).flush()
    rig.crash()
    assert part(1) in rig.store.logs


def test_a_directory_serves_one_process_only(tmp_path: Path) -> None:
    rig = LogRig(files=DiskFiles(), root=tmp_path)
    other = LogStore(DiskFiles(), rig.dirs, lambda _topic: rig.config, boot_id="boot-1")
    with pytest.raises(DirectoryLocked, match="in use"):
        load_logs(other, 0)
    rig.store.close()
    load_logs(other, 0)
    assert list(other.logs) == [PARTITION]
    other.close()


def test_unknown_directories_and_duplicate_partitions_are_refused() -> None:
    rig = LogRig(dirs=TWO)
    rig.store.close()
    rig.files.make_dir(ROOT / "d0" / "lost+found")
    rig.files.make_dir(ROOT / "d0" / "__cluster_metadata-0")
    rig.restart()
    rig.store.close()
    rig.files.make_dir(ROOT / "d1" / "orders-0")
    with pytest.raises(ConfigError, match="both in"):
        rig._open_store()
    rig.fake.crash()
    rig.files.make_dir(ROOT / "d0" / "photos")
    with pytest.raises(ConfigError, match="photos is not the directory of a partition"):
        rig._open_store()


def test_a_deleted_partition_is_renamed_at_once_and_removed_later() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    reader = rig.log.read(0, 1, up_to=1)
    rig.store.delete(PARTITION)
    assert PARTITION not in rig.store.logs
    [renamed] = [name for name in names(rig) if name.startswith("orders-0.")]
    assert renamed.endswith("-delete")
    assert list(rig.store.deleted) == [ROOT / "d0" / renamed]
    assert reader is not None
    assert reader.read(), "a reader on its way keeps its file"
    again = rig.store.create(PARTITION, TOPIC_ID, 0)
    assert again.end_offset == 0


def test_a_crash_does_not_bring_a_deleted_partition_back() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    rig.flush()
    rig.store.delete(PARTITION)
    rig.crash()
    assert rig.store.logs == {}
    assert len(rig.store.deleted) == 1


def test_stray_directories_are_left_alone() -> None:
    rig = LogRig()
    stray = ROOT / "d0" / f"orders-3.{'0' * 32}-stray"
    rig.files.make_dir(stray)
    rig.restart()
    assert rig.store.stray == [stray]
    assert list(rig.store.logs) == [PARTITION]
    rig.files.remove_dir(stray)
    assert rig.store.count_stray() == 0, "an operator has removed it"


def test_a_log_set_aside_is_intact_when_it_gets_its_name_back() -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"kept"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    rig.store.set_aside(PARTITION, "is of another topic")
    assert rig.store.logs == rig.store.future_logs == {}
    assert rig.store.topic_ids == {}
    assert [path.name[-6:] for path in rig.store.stray] == ["-stray", "-stray"]
    rig.store.create(PARTITION, ANOTHER_ID, 0)
    assert rig.read_all() == []
    rig.store.delete(PARTITION)
    rig.crash()
    assert rig.store.count_stray() == 2
    rig.store.close()
    [stray] = [path for path in rig.store.stray if path.parent.name == "d0"]
    rig.files.rename(stray, ROOT / "d0" / str(PARTITION))
    rig.store = rig._open_store()
    assert rig.read_all() == [(0, b"kept")]
    assert rig.store.topic_ids == {PARTITION: TOPIC_ID}


def test_a_log_whose_directory_has_failed_is_not_set_aside() -> None:
    rig = LogRig()
    rig.fake.fail_next("append", errno.EIO)
    with pytest.raises(StorageError):
        rig.append(batch_of(b"x"))
    with pytest.raises(LogDirOffline):
        rig.store.set_aside(PARTITION, "is of another topic")
    assert PARTITION in rig.store.logs


class FailingDirectory(FakeFiles):
    """A disk on which renames in one directory fail."""

    failing: Path | None = None

    def rename(self, old: Path, new: Path) -> None:
        if old.parent == self.failing:
            raise storage_error(old, OSError(errno.EROFS, "Read-only file system"))
        super().rename(old, new)


@pytest.mark.parametrize("failing", TWO)
def test_a_disk_that_fails_at_the_end_of_a_move_does_not_take_the_other_offline(
    failing: str,
) -> None:
    files = FailingDirectory()
    rig = LogRig(files=files, dirs=TWO)
    rig.append(batch_of(b"x"))
    future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    append_as_follower(future, batch_of(b"x"), 0)
    files.failing = ROOT / failing
    with pytest.raises(StorageError, match="Read-only"):
        rig.store.promote_future(PARTITION)
    assert [each.path.name for each in rig.store.dirs if each.failure] == [failing]
    assert rig.log.path == ROOT / "d0" / "orders-0"
    assert not rig.store.deleted
    if failing == "d1":
        assert rig.append(batch_of(b"y")).first_offset == 1
        rig.log.flush()
    files.failing = None
    rig.store.close()
    rig.store = rig._open_store()
    assert [value for _, value in rig.read_all()][:1] == [b"x"]


class FailedDisk(FakeFiles):
    """A disk that fails for every file below one directory."""

    failed: Path | None = None

    def operate(self, operation: str, path: Path) -> None:
        if self.failed is not None and path.is_relative_to(self.failed):
            raise storage_error(path, OSError(errno.EIO, "Input/output error"))
        super().operate(operation, path)


@pytest.mark.parametrize("is_noticed", [False, True])
def test_a_failed_disk_whose_segments_give_way_does_not_take_the_other_offline(
    *, is_noticed: bool
) -> None:
    """Their index entries are still to be written, to the failed disk."""
    files, config = FailedDisk(), TopicConfig(index_interval_bytes=0)
    rig = LogRig(config, files, dirs=TWO)
    rig.store.open_segments = OpenSegments(2)
    logs = [
        rig.store.create(part(number), TOPIC_ID, 0, path=ROOT / directory)
        for number, directory in enumerate(("d0", "d1", "d1", "d1"), 1)
    ]

    def append(log: PartitionLog) -> None:
        batch = batch_of(b"x")
        log.append_as_leader(batch, read_header(batch), 0, 0)

    for _ in range(3):
        append(logs[0])
    files.failed = ROOT / "d0"
    if is_noticed:
        with pytest.raises(StorageError, match="Input/output"):
            append(logs[0])
    for log in [*logs[1:], *logs[1:]]:
        append(log)
    assert [each.end_offset for each in logs[1:]] == [2, 2, 2]
    assert [each.path.name for each in rig.store.online] == (["d1"] if is_noticed else list(TWO))
    if not is_noticed:  # an error that has passed: the index is read from the batches again
        files.failed = None
        append(logs[0])
        assert len(rig.read_all(logs[0])) == 4


def test_a_failed_directory_takes_only_its_own_partitions_offline() -> None:
    rig = LogRig(dirs=TWO)
    other = rig.store.create(part(1), TOPIC_ID, 0)
    third = rig.store.create(part(2), TOPIC_ID, 0)
    rig.fake.fail_next("append", errno.EROFS)
    with pytest.raises(Exception, match="Read-only"):
        rig.append(batch_of(b"x"))
    assert rig.offline == [(ROOT / "d0", [part(0), part(2)])]
    with pytest.raises(LogDirOffline):
        third.flush()
    other.flush()
    assert rig.store.create(part(3), TOPIC_ID, 0).log_dir.path == ROOT / "d1"
    rig.store.close()
    assert ".kafka_cleanshutdown" in names(rig, "d1")
    assert ".kafka_cleanshutdown" not in names(rig, "d0")


def test_a_directory_that_cannot_be_read_at_the_start_is_offline() -> None:
    rig = LogRig(dirs=TWO)
    rig.store.create(part(1), TOPIC_ID, 0)
    rig.store.close()
    rig.fake.fail_next("open", errno.EIO)
    rig.store = rig._open_store()
    assert [log_dir.path.name for log_dir in rig.store.online] == ["d1"]
    assert list(rig.store.logs) == [part(1)]


def test_without_any_directory_nothing_can_be_created() -> None:
    rig = LogRig()
    rig.fake.fail_next("append", errno.EIO)
    with pytest.raises(Exception, match="EIO"):
        rig.append(batch_of(b"x"))
    with pytest.raises(PartitionOffline) as refused:
        rig.store.create(part(1), TOPIC_ID, 0)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_store_on_a_real_disk_reads_back_what_it_wrote(tmp_path: Path) -> None:
    rig = LogRig(files=DiskFiles(), root=tmp_path, dirs=TWO)
    for n in range(200):
        rig.append(batch_of(b"%d" % n * 100, timestamp=n))
    rig.restart()
    assert [value for _, value in rig.read_all()] == [b"%d" % n * 100 for n in range(200)]
    assert offset_for_timestamp(rig.log, 77) == (77, 77)
    rig.store.truncate({PARTITION: 100})
    rig.store.delete(PARTITION)
    rig.store.close()


def test_a_power_failure_does_not_undo_a_truncation() -> None:
    """Otherwise records of a deposed leader would be below the high watermark again, where readers
    of this replica would take them for committed.
    """
    rig = LogRig()
    for value in (b"a", b"never committed"):
        rig.append(batch_of(value), leader_epoch=1)
    rig.flush()
    rig.store.truncate({PARTITION: 1})
    rig.append(batch_of(b"committed"), leader_epoch=2)
    rig.log.set_high_watermark(2)
    rig.store.checkpoint(rig.store.online[0], HIGH_WATERMARKS)
    rig.boot_id = "boot-2"
    rig.crash()
    assert rig.read_all() == [(0, b"a")]
    assert rig.log.high_watermark == 1


def test_a_killed_process_does_not_lose_the_high_watermark() -> None:
    rig = LogRig()
    rig.append(batch_of(b"a"))
    rig.log.set_high_watermark(1)
    rig.store.checkpoint(rig.store.online[0], HIGH_WATERMARKS)
    rig.crash(lambda _kind, count: count)
    assert rig.log.high_watermark == 1


def grown(rig: LogRig, *, records: int, start: int) -> None:
    """Grow the log; its offsets are in all checkpoints."""
    for _ in range(records):
        rig.append(batch_of(b"old"))
    rig.log.advance_high_watermark(records)
    rig.log.maybe_increment_log_start(start)
    rig.flush()


def create_here(rig: LogRig) -> None:
    rig.store.create(PARTITION, ANOTHER_ID, 0)


def create_off_loop(rig: LogRig) -> None:
    asyncio.run(rig.store.create_off_loop({PARTITION: ANOTHER_ID}, 0, at_once))


async def at_once(work: Callable[[], None]) -> None:
    work()


@pytest.mark.parametrize("create", [create_here, create_off_loop])
def test_a_topic_created_again_does_not_inherit_checkpointed_offsets(
    create: Callable[[LogRig], None],
) -> None:
    rig = LogRig()
    grown(rig, records=20, start=18)
    rig.store.delete(PARTITION)
    create(rig)
    rig.append(batch_of(b"new"))
    rig.log.flush()
    rig.crash()
    assert rig.read_all() == [(0, b"new")]
    assert rig.log.high_watermark == 0
    assert rig.log.recovery_point == 0, "everything is checked after a crash"


def test_offsets_of_a_deleted_log_are_removed_before_a_log_of_that_name_is_created() -> None:
    """The deletion came last before a crash, or an operator removed the directory."""
    rig = LogRig()
    grown(rig, records=20, start=18)
    rig.store.delete(PARTITION)
    rig.crash()
    rig.store.create(PARTITION, ANOTHER_ID, 0)
    rig.append(batch_of(b"new"))
    rig.log.flush()
    rig.crash()
    assert rig.read_all() == [(0, b"new")]


def test_a_copy_that_returns_to_a_directory_has_its_own_offsets() -> None:
    rig = LogRig(dirs=TWO)
    grown(rig, records=20, start=18)
    for directory in ("d1", "d0"):
        future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / directory, future=True)
        assert LOG_STARTS not in names(rig, directory) or PARTITION not in (
            future.log_dir.checkpoints.read(LOG_STARTS)
        )
        rig.store.promote_future(PARTITION)


def test_a_log_that_restarts_before_its_old_start_survives_a_crash() -> None:
    rig = LogRig()
    grown(rig, records=20, start=18)
    rig.store.truncate_fully(PARTITION, 5, 0)
    rig.append(batch_of(b"from 5 on"))
    rig.log.flush()
    rig.crash()
    assert rig.read_all() == [(5, b"from 5 on")]


def test_a_log_truncated_before_its_start_survives_a_crash() -> None:
    rig = LogRig()
    grown(rig, records=20, start=18)
    rig.store.truncate({PARTITION: 10})
    rig.append(batch_of(b"at 10"))
    rig.log.flush()
    rig.crash()
    assert rig.read_all() == [(10, b"at 10")]


def test_before_create_is_called_before_a_log_is_made() -> None:
    rig = LogRig()
    received = []
    rig.store.before_create = lambda log_dir, where: received.append(
        (log_dir.path.name, where, str(where) in names(rig))
    )
    rig.store.create(part(1), TOPIC_ID, 0)
    assert received == [("d0", part(1), False)]


@pytest.mark.parametrize("fully", [False, True])
def test_a_log_is_truncated_although_the_disk_of_its_copy_fails(*, fully: bool) -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"x"))
    future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    append_as_follower(future, batch_of(b"x"), 0)
    future.log_dir.fail(StorageError("Input/output error"))
    assert rig.store.future_logs == {}
    rig.store.future_logs[PARTITION] = future  # noticed only now
    if fully:
        rig.store.truncate_fully(PARTITION, 7, 0)
    else:
        rig.store.truncate({PARTITION: 0})
    assert rig.log.end_offset == (7 if fully else 0)
    assert rig.store.future_logs == {}
    assert rig.log.log_dir.failure is None
