"""A lack of file descriptors delays operations that need one; it takes no directory offline."""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest

from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.files import OutOfFiles
from penstock.log.flush import MAX_RUNNING, Flusher
from penstock.log.follower_append import append_as_follower
from penstock.log.loading import load_logs
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.open_segments import OpenSegments
from penstock.log.store import LogStore
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import read_header
from penstock.testing.logs import TOPIC_ID, LogRig, batch_of
from penstock.types import TopicPartition


def part(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def store_on_disk(path: Path, files: DiskFiles, count: int, cached: int = 4096) -> LogStore:
    store = LogStore(
        files,
        [path],
        lambda _: TopicConfig(),
        boot_id="b",
        open_segments=OpenSegments(cached),
    )
    load_logs(store, 0)
    for number in range(count):
        store.create(part(number), TOPIC_ID, 0)
    return store


def append(store: LogStore, number: int) -> None:
    batch = batch_of(b"x")
    store.logs[part(number)].append_as_leader(batch, read_header(batch), 0, 0)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def at_most_more_files(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_partitions_than_files_are_written_and_stopped_cleanly(tmp_path: Path) -> None:
    with at_most_more_files(150):  # 16 logs are closed at a time, with some six files each
        store = store_on_disk(tmp_path, DiskFiles(max_held=110), 300, cached=40)
        for _ in range(2):
            for number in range(300):
                append(store, number)
        store.close()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    again = store_on_disk(tmp_path, DiskFiles(), 0)
    assert {log.end_offset for log in again.logs.values()} == {2}
    again.close()


def test_a_new_partition_holds_no_file_open(tmp_path: Path) -> None:
    store = store_on_disk(tmp_path, DiskFiles(), 1)
    before = open_files()
    for number in range(1, 20):
        store.create(part(number), TOPIC_ID, 0)
    assert open_files() == before
    store.close()


def test_slices_that_are_being_sent_keep_their_files_until_they_are_sent(
    tmp_path: Path,
) -> None:
    files = DiskFiles(max_held=10)
    store = store_on_disk(tmp_path, files, 20, cached=5)
    slices = []

    def hold_a_slice_of_each() -> None:
        for number in range(20):
            append(store, number)
            slices.append(store.logs[part(number)].read(0, 100, up_to=1))

    with pytest.raises(OutOfFiles, match="limit of files"):
        hold_a_slice_of_each()
    assert store.online
    slices.clear()
    for number in range(20):
        append(store, number)
    store.close()


def test_the_client_that_holds_files_open_the_longest_is_disconnected(tmp_path: Path) -> None:
    open_segments = OpenSegments(8)
    files = DiskFiles(max_held=10)
    store = LogStore(
        files, [tmp_path], lambda _: TopicConfig(), boot_id="b", open_segments=open_segments
    )
    load_logs(store, 0)
    unread: list[object] = []

    def shed() -> bool:
        return bool(unread) and unread.pop(0) is not None

    open_segments.shed = shed
    for number in range(20):
        store.create(part(number), TOPIC_ID, 0)
        append(store, number)
        unread.append(store.logs[part(number)].read(0, 100, up_to=1))
    assert 0 < len(unread) < 20
    store.close()


def test_a_full_file_table_is_not_a_failed_disk() -> None:
    rig = LogRig()
    rig.append(batch_of(b"a"))
    rig.flush()
    rig.log.segments.active.release()
    rig.fake.fail_next("open", errno.EMFILE)
    with pytest.raises(OutOfFiles):
        rig.append(batch_of(b"b"))
    assert rig.offline == []
    rig.append(batch_of(b"b"))
    assert [rig.log.end_offset, rig.log.segments.active.newest.offset] == [2, 0]


def test_after_a_lack_of_files_a_log_is_created_in_the_directory_where_it_was_begun() -> None:
    """In another directory it would exist twice, and the broker would not start again."""
    rig = LogRig(dirs=("d0", "d1"))
    rig.fake.fail_next("open", errno.EMFILE)
    with pytest.raises(OutOfFiles):
        rig.store.create(part(1), TOPIC_ID, 0)
    rig.store.create(part(2), TOPIC_ID, 0)  # gives the other directory the fewest logs
    rig.store.create(part(1), TOPIC_ID, 0)
    rig.store.close()
    assert rig._open_store().logs.keys() >= {part(1), part(2)}


def test_an_abort_whose_index_cannot_be_opened_is_not_half_written() -> None:
    leader, follower = LogRig(), LogRig()
    leader.append(batch_of(b"in txn", producer_id=9, sequence=0, transactional=True))
    leader.fake.fail_next("open", errno.EMFILE)
    with pytest.raises(OutOfFiles):
        leader.end_transaction(9, committed=False)
    assert (leader.log.end_offset, leader.offline) == (1, [])
    leader.end_transaction(9, committed=False)

    written = leader.log.read(0, 1 << 20, up_to=2)
    assert written is not None
    follower.fake.fail_next("open", errno.EMFILE)
    with pytest.raises(OutOfFiles):
        append_as_follower(follower.log, written.read(), 0)
    assert (follower.log.end_offset, follower.offline) == (0, [])
    append_as_follower(follower.log, written.read(), 0)
    assert [each.aborted_between(0, 2) for each in (leader.log, follower.log)] == [
        [AbortedTxn(producer_id=9, first_offset=0, last_offset=1, last_stable_offset=2)]
    ] * 2


def test_a_flush_that_lacked_a_file_is_repeated() -> None:
    rig = LogRig()
    delivered: SimpleQueue[object] = SimpleQueue()
    flusher = Flusher(delivered.put)
    rig.append(batch_of(b"a"))
    flush = rig.log.begin_flush()
    rig.log.fail(OutOfFiles("too many open files"))
    assert flush.epochs is not None
    assert rig.offline == []
    again = rig.log.begin_flush()
    assert (again.epochs, again.names, again.closed) == (flush.epochs, True, flush.closed)
    assert again.closed
    flusher.close()


def test_the_number_of_flushes_with_open_files_is_limited(tmp_path: Path) -> None:
    delivered: SimpleQueue[object] = SimpleQueue()
    flusher = Flusher(delivered.put)
    store = store_on_disk(tmp_path, DiskFiles(), 3 * MAX_RUNNING)
    before = open_files()
    asked = [flusher.request(log) for log in store.logs.values()]
    assert open_files() - before <= 6 * MAX_RUNNING
    while not all(future.done() for future in asked):
        delivered.get(timeout=10)()  # type: ignore[operator]
    flusher.close()
    store.close()


def test_a_log_with_more_unflushed_segments_than_files_is_flushed(tmp_path: Path) -> None:
    store = store_on_disk(tmp_path, DiskFiles(max_held=20), 1, cached=10)
    log = store.logs[part(0)]
    for _ in range(50):
        append(store, 0)
        log.roll(0)
    with at_most_more_files(30):
        flush = log.begin_flush()
        next(iter(log.segments)).rename_deleted()  # as retention does meanwhile
        flush.run()
        log.flushed(flush)
    assert log.recovery_point == 50
    store.close()


def test_an_index_whose_file_cannot_be_opened_keeps_its_entries_in_memory() -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=0))
    rig.append(batch_of(b"a"))
    index = rig.log.segments.active.offset_index.entries
    rig.fake.fail_next("open", errno.EMFILE)
    number = 0
    while not index._written:
        number += 1
        rig.append(batch_of(b"b"))
    assert number > 4096 // 8  # one attempt failed
    assert rig.log.end_offset == number + 1
    assert index[0][0] == 1
