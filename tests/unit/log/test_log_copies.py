"""Copies of logs that move to another log directory: crashes and failed disks."""

import errno

import pytest

from penstock.errors import ConfigError
from penstock.log.files import remove_flat_dir
from penstock.log.follower_append import append_as_follower
from penstock.log.partition_log import PartitionLog
from penstock.testing.logs import PARTITION, ROOT, TOPIC_ID, LogRig, batch_of
from penstock.types import TopicPartition, Uuid

TWO = ("d0", "d1")
ANOTHER_ID = Uuid(bytes(15) + b"2")
SECOND = TopicPartition("orders", 1)


def test_a_partition_moves_to_another_directory() -> None:
    rig = LogRig(dirs=TWO)
    for value in (b"a", b"b"):
        rig.append(batch_of(value))
    rig.log.advance_high_watermark(2)
    future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    assert future.path.name.endswith("-future")
    copied = rig.log.read(0, 1 << 20, up_to=2)
    assert copied is not None
    append_as_follower(future, copied.read(), 0)
    rig.store.promote_future(PARTITION)
    assert rig.log.path == ROOT / "d1" / "orders-0"
    assert rig.log.high_watermark == 2
    rig.append(batch_of(b"c"))
    rig.restart()
    assert rig.log.path == ROOT / "d1" / "orders-0"
    assert [value for _, value in rig.read_all()] == [b"a", b"b", b"c"]


def test_an_unfinished_move_is_resumed_after_a_restart() -> None:
    rig = LogRig(dirs=TWO)
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    rig.restart()
    assert list(rig.store.future_logs) == [PARTITION]


def copied(rig: LogRig) -> PartitionLog:
    """The copy after it has received everything that it lacked from its log; synced."""
    copy = rig.store.future_logs[PARTITION]
    part = rig.log.read(copy.end_offset, 1 << 20, up_to=rig.log.end_offset)
    if part is not None:
        append_as_follower(copy, part.read(), 0)
    copy.flush()
    return copy


def test_a_copy_with_more_records_than_its_log_after_a_power_failure_follows_the_log() -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"a"))
    rig.flush()
    rig.append(batch_of(b"lost"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    copied(rig)
    rig.crash()
    for value in (b"b", b"c"):  # before the move continues
        rig.append(batch_of(value))
    assert rig.read_all(copied(rig)) == rig.read_all() == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_copy_with_a_gap_after_a_crash_is_copied_again_from_there() -> None:
    rig = LogRig(dirs=TWO)
    for value in (b"a", b"b", b"c"):
        rig.append(batch_of(value))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    segment = copied(rig).segments.active
    found = segment.find(2)
    assert found is not None
    for _ in range(8):
        rig.append(batch_of(b"beyond the damaged offset"))
    rig.flush()
    rig.crash(damage=lambda: rig.fake.flip_bit(segment.path(), (found[0] + 7) * 8 + 2))
    assert rig.store.future_logs[PARTITION].end_offset == 2
    assert rig.read_all(copied(rig)) == rig.read_all()


@pytest.mark.parametrize("deleted", [0, 1, 3])
def test_a_copy_whose_disk_was_offline_follows_a_log_that_was_truncated(deleted: int) -> None:
    rig = LogRig(dirs=TWO)
    for value in (b"a", b"truncated"):
        rig.append(batch_of(value))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    copied(rig)
    del rig.store.future_logs[PARTITION]  # its disk failed
    rig.store.truncate({PARTITION: 1})
    for value in (b"b", b"c", b"d"):
        rig.append(batch_of(value), leader_epoch=1)
    rig.log.advance_high_watermark(4)
    rig.log.maybe_increment_log_start(deleted)
    rig.restart()
    copy = rig.store.future_logs[PARTITION]
    assert copy.end_offset == (2 if deleted == 3 else 1)  # else dropped when the move continues
    if deleted < 3:
        assert rig.read_all(copied(rig))[-3:] == [(1, b"b"), (2, b"c"), (3, b"d")]


@pytest.mark.parametrize("at", ["d0", "d1"])
def test_a_copy_of_a_deleted_topic_is_not_one_of_the_topic_that_has_its_name(at: str) -> None:
    """Its disk had failed when the topic was deleted, and is back."""
    rig = LogRig(dirs=TWO)
    for value in (b"old", b"older"):
        rig.append(batch_of(value))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    copied(rig)
    if at == "d1":
        rig.store.promote_future(PARTITION)
        rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d0", future=True)
        copied(rig)
    del rig.store.future_logs[PARTITION]
    rig.store.delete(PARTITION)
    again = Uuid(bytes(15) + b"2")
    rig.store.create(PARTITION, again, 0, path=ROOT / at)
    rig.append(batch_of(b"new"))
    rig.restart()
    assert rig.store.topic_ids == {PARTITION: again}
    assert rig.read_all() == [(0, b"new")]
    assert not rig.store.future_logs
    [stray] = rig.store.stray
    assert stray.parent != ROOT / at
    assert rig.files.exists(stray)


def test_a_crash_between_the_two_renames_of_a_move_loses_nothing() -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"x"))
    future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    append_as_follower(future, batch_of(b"x"), 0)
    future.flush()
    rig.store.delete(PARTITION)  # the first of the two renames of a promotion
    rig.crash()
    assert rig.log.path == ROOT / "d1" / "orders-0"
    assert [value for _, value in rig.read_all()] == [b"x"]
    assert rig.store.future_logs == {}
    assert not rig.store.had_unclean_shutdown, "the copy had all of it"


def test_a_copy_whose_log_was_lost_with_its_disk_may_lack_records() -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"x"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    copied(rig)
    rig.append(batch_of(b"lost"))
    rig.store.close()
    remove_flat_dir(rig.files, ROOT / "d0" / "orders-0")
    rig.store = rig._open_store()
    assert [value for _, value in rig.read_all()] == [b"x"]
    rig.restart()
    assert rig.store.had_unclean_shutdown, "other replicas lead first"


def test_a_copy_does_not_become_the_log_while_a_directory_is_offline() -> None:
    rig = LogRig(dirs=TWO)
    rig.append(batch_of(b"x"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True).flush()
    rig.store.close()
    rig.fake.fail_next("open", errno.EIO)
    rig.store = rig._open_store()
    assert PARTITION not in rig.store.logs
    assert PARTITION in rig.store.future_logs


def test_a_log_whose_copy_is_in_an_offline_directory_is_not_removed() -> None:
    rig = LogRig(dirs=TWO)
    log = rig.store.create(SECOND, TOPIC_ID, 0)
    assert log.log_dir.path == ROOT / "d1"
    append_as_follower(log, batch_of(b"x"), 0)
    future = rig.store.create(SECOND, TOPIC_ID, 0, path=ROOT / "d0", future=True)
    append_as_follower(future, batch_of(b"x"), 0)
    future.flush()
    rig.store.delete(SECOND)  # the first of the two renames of a promotion
    rig.store.close()
    rig.fake.fail_next("open", errno.EIO)
    rig.store = rig._open_store()
    assert [log_dir.path.name for log_dir in rig.store.online] == ["d1"]
    assert not rig.store.deleted
    rig.store.close()
    rig.store = rig._open_store()
    assert rig.store.logs[SECOND].path == ROOT / "d0" / "orders-1"
    assert len(rig.store.deleted) == 1


def test_after_a_restart_one_of_two_unfinished_copies_continues() -> None:
    rig = LogRig(dirs=("d0", "d1", "d2"))
    rig.append(batch_of(b"x"))
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    del rig.store.future_logs[PARTITION]  # its disk failed, and the move was started again
    rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d2", future=True)
    rig.restart()
    assert [value for _, value in rig.read_all()] == [b"x"]
    (copy,) = rig.store.future_logs.values()
    (spare,) = rig.store.deleted
    assert {copy.log_dir.path, spare.parent} == {ROOT / "d1", ROOT / "d2"}


def test_two_copies_without_their_log_refuse_the_start() -> None:
    rig = LogRig(dirs=TWO)
    for path in TWO:
        rig.store.create(SECOND, TOPIC_ID, 0, path=ROOT / path, future=True).flush()
        del rig.store.future_logs[SECOND]
    with pytest.raises(ConfigError, match="orders-1 has no log, and copies both in"):
        rig.restart()


def test_a_truncation_reaches_the_copy_in_another_directory() -> None:
    rig = LogRig(dirs=("d0", "d1"))
    future = rig.store.create(PARTITION, TOPIC_ID, 0, path=ROOT / "d1", future=True)
    for value in (b"a", b"b"):
        rig.append(batch_of(value))
    copied = rig.log.read(0, 1 << 20, up_to=2)
    assert copied is not None
    append_as_follower(future, copied.read(), 0)
    rig.store.truncate({PARTITION: 1})
    assert (rig.log.end_offset, future.end_offset) == (1, 1)
    rig.store.truncate_fully(PARTITION, 7, 0)
    assert (rig.log.end_offset, future.end_offset) == (7, 7)
