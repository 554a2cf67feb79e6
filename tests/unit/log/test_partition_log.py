"""One partition's log: append, read, roll, truncate, retain."""

import errno
import tracemalloc
from pathlib import Path

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.follower_append import OffsetsOutOfOrder, append_as_follower
from penstock.log.log_dir import LogDirOffline
from penstock.log.lookup import BATCHES_A_TURN, SEGMENTS_A_TURN, OffsetOutOfRange, TimeSearch
from penstock.log.old_segments import delete_old_segments
from penstock.log.partition_log import SMALL_SNAPSHOT_BYTES
from penstock.log.producer_snapshot import ENTRY_BYTES
from penstock.log.producer_state import OutOfOrderSequence
from penstock.log.segment_indexes import MOST_INTERVAL_BYTES
from penstock.log.snapshots import snapshot_offsets
from penstock.log.time_search import (
    offset_for_timestamp,
    offset_of_max_timestamp,
    searches_by_time,
    searches_for_newest,
)
from penstock.log.truncation import truncate_to
from penstock.log.txn_index import AbortedTxn
from penstock.record.batch import CorruptBatch, assign, batches, crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.testing.files import FakeFiles
from penstock.testing.logs import PARTITION, LogRig, batch_of

SMALL = TopicConfig(segment_bytes=1_000, index_interval_bytes=200)


class ReadFiles(FakeFiles):
    """Records what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_suffixes: list[str] = []

    def operate(self, operation: str, path: Path) -> None:
        super().operate(operation, path)
        if operation == "read":
            self.read_suffixes.append(path.suffix)


def filled(count: int, config: TopicConfig = SMALL) -> LogRig:
    """Batches of two records, `count` of them, at times 0, 10, 20, ..."""
    rig = LogRig(config)
    for n in range(count):
        rig.append(batch_of(b"%d" % (2 * n), b"%d" % (2 * n + 1), timestamp=n * 10))
    return rig


@pytest.mark.row("A005")
def test_offsets_begin_at_0_and_ascend_without_a_gap() -> None:
    rig = LogRig()
    assert [rig.append(batch_of(b"a", b"b")).first_offset for _ in range(3)] == [0, 2, 4]
    assert rig.log.end_offset == 6
    assert rig.read_all() == [(0, b"a"), (1, b"b"), (2, b"a"), (3, b"b"), (4, b"a"), (5, b"b")]


def test_a_batch_is_stored_with_its_offset_and_leader_epoch_and_is_otherwise_as_sent() -> None:
    rig = LogRig()
    rig.append(batch_of(b"first"))
    sent = batch_of(b"second", codec=Codec.ZSTD)
    original = bytes(sent)
    rig.append(sent, leader_epoch=7)
    part = rig.log.read(1, 1, up_to=2)
    assert part is not None
    stored = part.read()
    header = read_header(stored)
    assert (header.base_offset, header.leader_epoch) == (1, 7)
    assert stored[16:] == original[16:]
    assert crc_matches(stored, header)


def test_log_append_time_replaces_the_producers() -> None:
    rig = LogRig(TopicConfig(message_timestamp_type="LogAppendTime"))
    appended = rig.append(batch_of(b"a", timestamp=5), now_ms=777)
    assert appended.log_append_time == 777
    part = rig.log.read(0, 1, up_to=1)
    assert part is not None
    header = read_header(part.read())
    assert (header.max_timestamp, header.is_log_append_time) == (777, True)
    assert crc_matches(part.read(), header)


@pytest.mark.row("A067")
def test_consumers_read_up_to_the_high_watermark() -> None:
    rig = LogRig()
    for n in range(9):
        rig.append(batch_of(b"%d" % n))
    assert rig.log.end_offset == 9
    rig.log.advance_high_watermark(6)
    part = rig.log.read(0, 1 << 20, up_to=rig.log.high_watermark)
    assert part is not None
    assert [header.base_offset for _, header in batches(part.read())] == [0, 1, 2, 3, 4, 5]
    assert rig.log.read(6, 1 << 20, up_to=rig.log.high_watermark) is None


def test_a_batch_that_the_high_watermark_cuts_is_not_read() -> None:
    """One that was checkpointed before the loss of other records may lie anywhere. A response with
    an empty slice could not be sent.
    """
    rig = filled(5)
    for offset in (0, 1, 2, 3):
        part = rig.log.read(offset, 1 << 20, up_to=3)
        assert (part is not None) == (offset < 2)


@pytest.mark.row("A066")
def test_the_high_watermark_only_advances_and_not_past_the_end() -> None:
    rig = filled(5)
    assert rig.log.advance_high_watermark(4)
    assert not rig.log.advance_high_watermark(3)
    assert rig.log.high_watermark == 4
    with pytest.raises(ValueError, match="past the end"):
        rig.log.advance_high_watermark(11)


def test_a_read_from_inside_a_batch_begins_with_that_batch() -> None:
    rig = filled(50)
    for offset in range(100):
        part = rig.log.read(offset, 1, up_to=100)
        assert part is not None
        assert read_header(part.read()).base_offset == offset - offset % 2


@pytest.mark.row("A149")
def test_a_first_batch_larger_than_the_limit_is_returned_complete_or_not_at_all() -> None:
    rig = LogRig()
    size = len(batch_of(b"x" * 500))
    rig.append(batch_of(b"x" * 500))
    whole = rig.log.read(0, 10, up_to=1)
    assert whole is not None
    assert whole.size_bytes == size
    assert rig.log.read(0, size - 1, up_to=1, min_one_batch=False) is None
    found = rig.log.read(0, size, up_to=1, min_one_batch=False)
    assert found is not None
    assert (found.position, found.size_bytes) == (whole.position, whole.size_bytes)


def test_offsets_outside_the_log_are_refused_with_its_range() -> None:
    rig = filled(10)
    rig.log.advance_high_watermark(20)
    rig.log.maybe_increment_log_start(4)
    for asked in (3, 21):
        with pytest.raises(OffsetOutOfRange) as refused:
            rig.log.read(asked, 1, up_to=20)
        assert (refused.value.asked, refused.value.start, refused.value.end) == (asked, 4, 20)


@pytest.mark.row("A094", "A100")
def test_a_segment_rolls_before_it_passes_its_size() -> None:
    rig = filled(100)
    assert len(rig.log.segments) > 1
    assert all(segment.size_bytes <= 1_000 for segment in rig.log.segments)
    names = [name for name in rig.files.names(rig.log.path) if name.endswith(".log")]
    assert names == [f"{segment.base_offset:020d}.log" for segment in rig.log.segments]
    assert [value for _, value in rig.read_all()] == [b"%d" % n for n in range(200)]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    rig = LogRig(SMALL)
    for size in (10, 2_000, 10):
        rig.append(batch_of(b"x" * size))
    assert [segment.base_offset for segment in rig.log.segments] == [0, 1, 2]


@pytest.mark.row("A100")
def test_a_segment_rolls_by_the_time_between_its_records() -> None:
    rig = LogRig(TopicConfig(segment_ms=1_000))
    for timestamp in (0, 1_000, 1_001, 1_500, 2_002):
        rig.append(batch_of(b"x", timestamp=timestamp))
    assert [segment.base_offset for segment in rig.log.segments] == [0, 2, 4]


def test_records_without_timestamps_roll_by_the_age_of_the_segment() -> None:
    rig = LogRig(TopicConfig(segment_ms=1_000))
    for now_ms in (10, 1_000, 1_001):
        rig.append(batch_of(b"x", timestamp=-1), now_ms=now_ms)
    assert [segment.base_offset for segment in rig.log.segments] == [0, 2]


@pytest.mark.row("A100")
def test_a_segment_rolls_when_its_index_is_full() -> None:
    rig = LogRig(TopicConfig(segment_index_bytes=48, index_interval_bytes=1))
    for n in range(20):
        rig.append(batch_of(b"x", timestamp=n))
    # The time index of 48 bytes takes four entries, of which one is kept for the roll.
    assert [segment.base_offset for segment in rig.log.segments] == [0, 4, 8, 12, 16]
    assert rig.files.size(rig.log.segments.first.path(".timeindex")) <= 48


def test_a_segment_rolls_when_relative_offsets_no_longer_fit() -> None:
    rig = LogRig()
    rig.append(batch_of(b"x"))
    far = batch_of(b"y")
    far[:8] = (1 << 31).to_bytes(8)
    append_as_follower(rig.log, far, 0)
    assert [segment.base_offset for segment in rig.log.segments] == [0, 1 << 31]
    assert rig.read_all() == [(0, b"x"), (1 << 31, b"y")]


@pytest.mark.row("A097")
def test_indexes_are_preallocated_and_trimmed_at_the_roll() -> None:
    rig = filled(40)
    first, active = rig.log.segments.first, rig.log.segments.active
    assert rig.files.size(first.path(".index")) == first.offset_index.entries.size_bytes > 0
    assert rig.files.size(active.path(".index")) == 10 << 20
    assert rig.files.size(active.path(".timeindex")) == (10 << 20) // 12 * 12


def index_sizes(rig: LogRig) -> list[int]:
    path = rig.log.path
    found = [name for name in rig.files.names(path) if name.endswith("index")]
    return [rig.files.size(path / name) for name in found]


def test_the_indexes_of_a_new_log_are_created_on_demand() -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=1))
    rig.append(batch_of(b"x"))
    rig.append(batch_of(b"y"))
    assert index_sizes(rig) == []
    rig.log.flush()
    assert index_sizes(rig) == [10 << 20, (10 << 20) // 12 * 12]
    rig.log.segments.active.release()
    assert index_sizes(rig) == [8, 12]
    assert rig.read_all() == [(0, b"x"), (1, b"y")]


def test_a_clean_stop_creates_the_indexes_of_an_empty_log() -> None:
    rig = LogRig()
    rig.store.close()
    assert index_sizes(rig) == [0, 0]


def test_a_new_log_without_indexes_survives_a_crash() -> None:
    rig = LogRig()
    for _ in range(3):
        rig.append(batch_of(b"x"))
    rig.crash(lambda _kind, count: count)
    assert rig.read_all() == [(0, b"x"), (1, b"x"), (2, b"x")]
    rig.append(batch_of(b"y"))
    assert rig.read_all()[3:] == [(3, b"y")]


@pytest.mark.row("A096")
def test_there_is_one_index_entry_for_each_interval_of_bytes() -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=4096))
    size = len(batch_of(b"x" * 1_000))
    for _ in range(100):
        rig.append(batch_of(b"x" * 1_000))
    entries = rig.log.segments.active.offset_index.entries
    positions = [position for _, position in (entries[n] for n in range(len(entries)))]
    assert positions == [n * 4 * size for n in range(1, 25)]


def test_a_follower_writes_what_the_leader_wrote() -> None:
    leader = filled(60)
    follower = LogRig(TopicConfig(segment_bytes=1_700))
    while (part := leader.log.read(follower.log.end_offset, 700, up_to=120)) is not None:
        assert append_as_follower(follower.log, part.read(), 0) is not None
    assert follower.read_all() == leader.read_all()
    assert len(follower.log.segments) > 1
    assert all(segment.size_bytes <= 1_700 for segment in follower.log.segments)
    assert follower.log.epochs.entries == leader.log.epochs.entries


def test_a_truncated_batch_at_the_end_of_a_fetch_is_ignored() -> None:
    rig, leader = LogRig(), filled(3)
    part = leader.log.read(0, 1 << 20, up_to=6)
    assert part is not None
    assert append_as_follower(rig.log, part.read()[:-1], 0) is not None
    assert rig.log.end_offset == 4
    assert append_as_follower(rig.log, b"", 0) is None


def test_a_follower_refuses_damaged_and_disordered_batches() -> None:
    rig, leader = LogRig(), filled(3)
    part = leader.log.read(0, 1 << 20, up_to=6)
    assert part is not None
    data = bytearray(part.read())
    data[-1] ^= 1
    with pytest.raises(CorruptBatch):
        append_as_follower(rig.log, data, 0)
    assert rig.log.end_offset == 0
    append_as_follower(rig.log, part.read(), 0)
    with pytest.raises(OffsetsOutOfOrder, match="the log ends at 6"):
        append_as_follower(rig.log, part.read(), 0)


def test_an_empty_follower_accepts_a_first_batch_that_spans_its_end() -> None:
    leader = LogRig()
    leader.append(batch_of(*[b"%d" % number for number in range(20)]))
    leader.append(batch_of(b"20"))
    rig = LogRig()
    rig.store.truncate_fully(PARTITION, 15, 0)
    part = leader.log.read(15, 1 << 20, up_to=21)
    assert part is not None
    assert append_as_follower(rig.log, part.read(), 0) is not None
    assert (rig.log.log_start_offset, rig.log.high_watermark, rig.log.end_offset) == (15, 15, 21)
    assert rig.read_all() == [(offset, b"%d" % offset) for offset in range(15, 21)]
    rig.log.advance_high_watermark(21)
    rig.flush()
    rig.crash()
    assert (rig.log.log_start_offset, rig.log.end_offset) == (15, 21)


def test_a_follower_refuses_a_first_batch_that_ends_before_its_end() -> None:
    leader, rig = filled(3), LogRig()
    rig.store.truncate_fully(PARTITION, 15, 0)
    part = leader.log.read(0, 1 << 20, up_to=6)
    assert part is not None
    with pytest.raises(OffsetsOutOfOrder, match="the log ends at 15"):
        append_as_follower(rig.log, part.read(), 0)


def test_a_retried_batch_is_answered_with_its_first_offset() -> None:
    rig = LogRig()
    for sequence in range(3):
        rig.append(batch_of(b"x", producer_id=9, sequence=sequence))
    again = rig.append(batch_of(b"x", producer_id=9, sequence=1))
    assert (again.first_offset, again.duplicate) == (1, True)
    assert rig.log.end_offset == 3
    with pytest.raises(OutOfOrderSequence):
        rig.append(batch_of(b"x", producer_id=9, sequence=4))


DAY_MS = 86_400_000


def old_batch(sequence: int) -> bytearray:
    """From an idempotent producer that writes records with timestamps of years ago."""
    return batch_of(b"x", producer_id=9, sequence=sequence, timestamp=1)


def test_a_producer_of_old_timestamps_expires_like_any_other() -> None:
    leader, follower, now_ms = LogRig(), LogRig(), 1000 * DAY_MS
    for sequence in range(3):
        leader.append(old_batch(sequence), now_ms=now_ms)
    part = leader.log.read(0, 1 << 20, up_to=3)
    assert part is not None
    append_as_follower(follower.log, part.read(), now_ms)
    follower.store.truncate({PARTITION: 2})
    for rig in (leader, follower):
        producers = rig.log.producers
        producers.expire(now_ms + DAY_MS - 1, DAY_MS)
        again = rig.append(old_batch(1))
        assert (again.first_offset, again.duplicate) == (1, True)
        producers.expire(now_ms + DAY_MS, DAY_MS)
        assert producers.producers == {}


def test_after_a_restart_producers_expire_by_their_last_timestamp() -> None:
    rig = LogRig()
    rig.append(old_batch(0), now_ms=1000 * DAY_MS)
    rig.restart()
    rig.log.producers.expire(DAY_MS, DAY_MS)
    assert list(rig.log.producers.producers) == [9]
    rig.log.producers.expire(DAY_MS + 1, DAY_MS)
    assert rig.log.producers.producers == {}


def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    rig = LogRig()
    rig.append(batch_of(b"plain"))
    rig.append(batch_of(b"in txn", producer_id=9, sequence=0, transactional=True))
    rig.append(batch_of(b"plain"))
    rig.log.advance_high_watermark(3)
    assert rig.log.last_stable_offset == 1
    rig.end_transaction(9, committed=True)
    assert rig.log.last_stable_offset == 1, "the marker is not yet replicated"
    rig.log.advance_high_watermark(4)
    assert rig.log.last_stable_offset == 4


def test_aborted_transactions_are_listed_for_the_ranges_they_touch() -> None:
    rig = LogRig(SMALL)
    rig.append(batch_of(b"in txn", producer_id=9, sequence=0, transactional=True))
    for _ in range(20):
        rig.append(batch_of(b"x" * 100))
    rig.end_transaction(9, committed=False)
    rig.append(batch_of(b"later"))
    assert len(rig.log.segments) > 1
    aborted = AbortedTxn(producer_id=9, first_offset=0, last_offset=21, last_stable_offset=22)
    assert rig.log.aborted_between(0, 23) == [aborted]
    assert rig.log.aborted_between(5, 6) == [aborted]
    assert rig.log.aborted_between(22, 23) == []


def test_a_damaged_index_of_aborted_transactions_is_rebuilt() -> None:
    rig = LogRig(SMALL)
    for n in range(8):
        rig.append(batch_of(b"x" * 150, producer_id=n, sequence=0, transactional=True))
        rig.end_transaction(n, committed=n % 2 == 0)
    expected = rig.log.aborted_between(0, 16)
    assert [txn.producer_id for txn in expected] == [1, 3, 5, 7]
    for path in rig.fake.walk(rig.log.path):
        if path.suffix == ".txnindex":
            rig.fake.flip_bit(path, 3)
    for segment in rig.log.segments:
        segment.release()
    assert rig.log.aborted_between(0, 16) == expected


@pytest.mark.row("A099")
def test_a_time_is_found_exactly_through_both_indexes() -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=200, segment_bytes=4_000))
    for n in range(100):
        base = 1557554753000 + n * 30
        times = (base, base + 10, base + 20)
        rig.append(batch_of(b"a", b"b", b"c", timestamps=times, codec=Codec.GZIP))
    assert len(rig.log.segments) > 1
    assert offset_for_timestamp(rig.log, 1557554753430) == (1557554753430, 42 + 1)
    assert offset_for_timestamp(rig.log, 1557554753431) == (1557554753440, 44)
    assert offset_for_timestamp(rig.log, 0) == (1557554753000, 0)
    assert offset_for_timestamp(rig.log, 1557554753000 + 3_000) is None


def test_a_time_is_found_although_timestamps_are_not_monotonic() -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=1))
    times = [50, 10, 70, 60, 20, 90, 80]
    for timestamp in times:
        rig.append(batch_of(b"x", timestamp=timestamp))
    for asked in range(95):
        expected = next(((at, n) for n, at in enumerate(times) if at >= asked), None)
        assert offset_for_timestamp(rig.log, asked) == expected
    assert offset_of_max_timestamp(rig.log) == (90, 5)


def test_the_newest_timestamp_is_found_exactly() -> None:
    rig = LogRig(SMALL)
    assert offset_of_max_timestamp(rig.log) is None
    for n in range(30):
        rig.append(batch_of(b"a", b"b", b"c", timestamps=(n, 1_000 - n, n)))
    assert offset_of_max_timestamp(rig.log) == (1_000, 1)
    rig.restart()
    assert offset_of_max_timestamp(rig.log) == (1_000, 1)


def test_a_time_search_does_not_go_before_the_log_start() -> None:
    rig = filled(20)
    rig.log.advance_high_watermark(40)
    rig.log.maybe_increment_log_start(7)
    assert offset_for_timestamp(rig.log, 0) == (30, 7)


def test_the_end_offset_of_an_epoch_is_where_the_next_began() -> None:
    rig = LogRig()
    for epoch in (1, 1, 3):
        rig.append(batch_of(b"x"), leader_epoch=epoch)
    assert rig.log.offset_for_leader_epoch(1) == (1, 2)
    assert rig.log.offset_for_leader_epoch(2) == (1, 2)
    assert rig.log.offset_for_leader_epoch(3) == (3, 3)
    assert rig.log.offset_for_leader_epoch(4) == (-1, -1)


@pytest.mark.parametrize("offset", [0, 1, 7, 40, 99])
def test_a_truncated_log_keeps_earlier_records_and_accepts_appends(offset: int) -> None:
    rig = filled(50)
    before = rig.read_all()
    rig.store.truncate({PARTITION: offset})
    kept = offset - offset % 2  # a batch is removed entirely
    assert rig.read_all() == before[:kept]
    assert rig.log.end_offset == kept
    assert rig.append(batch_of(b"new"), leader_epoch=5).first_offset == kept
    assert rig.read_all() == [*before[:kept], (kept, b"new")]
    assert rig.log.epochs.latest == 5


def test_truncation_reverts_producers_and_transactions() -> None:
    rig = LogRig(SMALL)
    for sequence in range(20):
        rig.append(batch_of(b"x" * 90, producer_id=9, sequence=sequence, transactional=True))
    rig.end_transaction(9, committed=False)
    rig.store.truncate({PARTITION: 12})
    assert rig.log.producers.first_unstable_offset == 0
    assert rig.log.producers.producers[9].last_sequence == 11
    assert rig.log.aborted_between(0, 12) == []
    assert (
        rig.append(batch_of(b"x", producer_id=9, sequence=12, transactional=True)).first_offset
        == 12
    )


def test_a_log_can_start_again_at_any_offset() -> None:
    rig = filled(50)
    rig.store.truncate_fully(PARTITION, 1_000, 0)
    log = rig.log
    assert (log.log_start_offset, log.high_watermark, log.end_offset) == (1_000, 1_000, 1_000)
    assert rig.append(batch_of(b"x")).first_offset == 1_000
    rig.restart()
    assert rig.read_all() == [(1_000, b"x")]
    assert rig.log.log_start_offset == 1_000


@pytest.mark.row("A095", "A101")
def test_retention_drops_whole_segments_and_moves_the_log_start() -> None:
    rig = filled(100, TopicConfig(segment_bytes=1_000, retention_ms=200, file_delete_delay_ms=60))
    rig.log.advance_high_watermark(200)
    count = len(rig.log.segments)
    dropped = delete_old_segments(rig.log, now_ms=1_000)
    assert 0 < dropped < count
    first = rig.log.segments.first
    assert rig.log.log_start_offset == first.base_offset
    assert first.newest_ms >= 800
    assert any(name.endswith(".log.deleted") for name in rig.files.names(rig.log.path))
    rig.log.segments.remove_deleted(1_000)
    rig.log.segments.remove_deleted(1_059)
    assert any(name.endswith(".log.deleted") for name in rig.files.names(rig.log.path))
    rig.log.segments.remove_deleted(1_060)
    assert not any(name.endswith(".deleted") for name in rig.files.names(rig.log.path))


def test_when_all_records_expire_the_log_is_empty_but_keeps_its_end() -> None:
    rig = filled(10, TopicConfig(retention_ms=1))
    rig.log.advance_high_watermark(20)
    assert delete_old_segments(rig.log, now_ms=10_000) == 1
    assert (rig.log.log_start_offset, rig.log.end_offset) == (20, 20)
    rig.restart()
    assert (rig.log.log_start_offset, rig.log.end_offset) == (20, 20)
    assert rig.append(batch_of(b"x")).first_offset == 20


def test_compacted_logs_drop_only_segments_before_the_log_start() -> None:
    rig = filled(100, TopicConfig(segment_bytes=1_000, retention_ms=1, cleanup_policy=("compact",)))
    rig.log.advance_high_watermark(200)
    assert delete_old_segments(rig.log, now_ms=1 << 40) == 0
    rig.log.maybe_increment_log_start(100)
    assert delete_old_segments(rig.log, now_ms=1 << 40) > 0
    assert rig.log.segments.first.base_offset <= 100


@pytest.mark.row("A104")
def test_flush_messages_triggers_a_flush() -> None:
    rig = LogRig(TopicConfig(flush_messages=3))
    assert [rig.append(batch_of(b"x")).flush_due for _ in range(3)] == [False, False, True]
    rig.log.flush()
    assert not rig.append(batch_of(b"x")).flush_due


def test_nothing_is_accepted_after_a_failed_append() -> None:
    rig = filled(3)
    rig.fake.fail_next("append", errno.ENOSPC)
    with pytest.raises(StorageError, match="No space left"):
        rig.append(batch_of(b"x"))
    with pytest.raises(LogDirOffline, match="No space left"):
        rig.append(batch_of(b"x"))
    with pytest.raises(LogDirOffline):
        rig.log.read(0, 1, up_to=6)
    assert rig.offline == [(rig.dirs[0], [PARTITION])]


def test_nothing_is_accepted_after_a_failed_sync() -> None:
    rig = filled(3)
    rig.fake.fail_next("sync", errno.EIO)
    with pytest.raises(StorageError, match="Input/output"):
        rig.log.flush()
    assert rig.log.recovery_point == 0
    with pytest.raises(LogDirOffline):
        rig.log.flush()
    with pytest.raises(LogDirOffline):
        rig.append(batch_of(b"x"))


def test_a_flush_begun_before_a_truncation_does_not_cover_later_records() -> None:
    rig = filled(10)
    flush = rig.log.begin_flush()
    rig.store.truncate({PARTITION: 4})
    rig.append(batch_of(b"new", b"er"))
    flush.run()
    rig.log.flushed(flush)
    assert rig.log.recovery_point == 0


def test_a_truncation_at_the_end_forgets_an_epoch_without_records() -> None:
    rig = LogRig()
    rig.append(batch_of(b"a"), leader_epoch=1)
    rig.log.assign_epoch(5, 1)
    rig.store.truncate({PARTITION: 1})
    assert rig.log.epochs.latest == 1
    rig.append(batch_of(b"b"), leader_epoch=5)
    assert rig.log.epochs.entries == [(1, 0), (5, 1)]


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_compacted_log_rolls_before_its_records_are_overdue(policy: str) -> None:
    """KIP-354: only closed segments are compacted."""
    rig = LogRig(TopicConfig(cleanup_policy=(policy,), max_compaction_lag_ms=60_000))
    for timestamp in (0, 60_000, 60_001):
        rig.append(batch_of(b"x", timestamp=timestamp))
    bases = [segment.base_offset for segment in rig.log.segments]
    assert bases == ([0, 2] if policy == "compact" else [0])


@pytest.mark.parametrize("segment_bytes", [1 << 30, 1000])
def test_a_slice_lists_only_aborted_transactions_within_it(
    segment_bytes: int,
) -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=0, segment_bytes=segment_bytes))
    for number in range(50):
        rig.append(batch_of(b"x", producer_id=7, sequence=number, transactional=True))
        rig.end_transaction(7, committed=False)
    end = rig.log.end_offset
    for start in range(0, end, 7):
        found = rig.log.read(start, 300, up_to=end)
        assert found is not None
        last = [header.last_offset for _, header in batches(found.read())][-1]
        reported = {each.first_offset for each in rig.log.aborted_in(start, found, end)}
        needed = {each.first_offset for each in rig.log.aborted_between(start, last + 1)}
        assert needed <= reported
        assert len(reported) <= len(needed) + 2  # at most one index entry further


def test_a_search_by_time_does_not_load_all_records_of_a_batch() -> None:
    rig, count = LogRig(), 20_000
    times = [1000] * (count - 1) + [2000]
    batch = build_batch([Record(i, at, None, None, []) for i, at in enumerate(times)])
    rig.append(batch)
    tracemalloc.start()
    try:
        assert offset_for_timestamp(rig.log, 1500) == (2000, count - 1)
        assert tracemalloc.get_traced_memory()[1] < 50 * count
    finally:
        tracemalloc.stop()


def test_a_huge_index_interval_is_capped() -> None:
    """Otherwise every fetch from the middle of a segment would read the headers of all earlier
    batches.
    """
    files = ReadFiles()
    rig = LogRig(TopicConfig(index_interval_bytes=1 << 30), files)
    size = len(batch_of(bytes(1000)))
    for _ in range(5 * MOST_INTERVAL_BYTES // size):
        rig.append(batch_of(bytes(1000)))
    files.read_suffixes.clear()
    assert rig.log.read(rig.log.end_offset - 1, 1, up_to=rig.log.end_offset) is not None
    assert files.read_suffixes.count(".log") <= MOST_INTERVAL_BYTES // size + 2


def test_a_search_by_time_yields_among_many_batches_of_one_timestamp() -> None:
    """The time index has no entry between them: their headers are read one by one."""
    files, count = ReadFiles(), 3 * BATCHES_A_TURN
    rig = LogRig(files=files)
    one = batch_of(b"x", timestamp=1000)
    for _ in range(count):
        rig.append(bytearray(one))
    rig.append(batch_of(b"x", timestamp=2000))
    files.read_suffixes.clear()
    (search,) = searches_by_time(rig.log, 1500)
    assert len(files.read_suffixes) < 5, "what the loop does itself is little"
    found: object = search
    turns = 0
    while isinstance(found, TimeSearch):
        files.read_suffixes.clear()
        found, turns = found.run(), turns + 1
        assert len(files.read_suffixes) < BATCHES_A_TURN // 10
    assert (found, turns) == ((2000, count), 4)
    assert offset_for_timestamp(rig.log, 1500) == (2000, count)


@pytest.mark.parametrize("is_newest", [False, True])
def test_a_search_by_time_yields_among_many_segments(*, is_newest: bool) -> None:
    """After a restart, each has to be opened for its newest timestamp."""
    files, count = ReadFiles(), 10 * SEGMENTS_A_TURN
    rig = LogRig(TopicConfig(segment_ms=1), files=files)
    for number in range(count):
        rig.append(batch_of(b"x", timestamp=10 * number))
    rig.restart()
    assert len(rig.log.segments) == count
    last_ms, reads, found = 10 * count - 10, [], None
    files.read_suffixes.clear()
    for search in searches_for_newest(rig.log) if is_newest else searches_by_time(rig.log, last_ms):
        reads.append(len(files.read_suffixes))
        files.read_suffixes.clear()
        found = search if search is None else search.run()
    assert found == (last_ms, count - 1)
    assert len(reads) >= 10
    assert max(reads) <= 5 * SEGMENTS_A_TURN


def test_very_many_producers_do_not_make_every_roll_slow() -> None:
    """A client chooses producer ids and timestamps: each small batch may bring a producer more, and
    each may close a segment.
    """
    rig = LogRig(TopicConfig(segment_ms=1))
    producers = 2 * SMALL_SNAPSHOT_BYTES // ENTRY_BYTES
    for number in range(producers):
        rig.append(batch_of(b"x", producer_id=number, sequence=0))
    rig.flush()
    rolls = 200
    for number in range(1, rolls + 1):
        rig.append(batch_of(b"x", timestamp=10 * number, producer_id=0, sequence=number))
    offsets = snapshot_offsets(rig.files, rig.log.path)
    assert len(rig.log.segments) == rolls + 1
    assert 0 < len(offsets) < rolls // 10
    rig.flush()
    rig.crash()
    assert len(rig.log.producers.producers) == producers
    assert rig.append(batch_of(b"x", producer_id=7, sequence=0)).duplicate


def test_an_aborted_transaction_does_not_make_the_next_fetch_reread_the_index() -> None:
    files = ReadFiles()
    rig = LogRig(files=files)
    for n in range(50):
        rig.append(batch_of(b"x", producer_id=9, sequence=n, transactional=True))
        rig.end_transaction(9, committed=False)
        assert [each.first_offset for each in rig.log.aborted_between(2 * n, 2 * n + 2)] == [2 * n]
    files.read_suffixes.clear()
    for n in range(50, 60):
        rig.append(batch_of(b"x", producer_id=9, sequence=n, transactional=True))
        rig.end_transaction(9, committed=False)
        assert [each.first_offset for each in rig.log.aborted_between(2 * n, 2 * n + 2)] == [2 * n]
    assert ".txnindex" not in files.read_suffixes
    rig.restart()
    assert len(rig.log.aborted_between(0, 120)) == 60


def test_a_sequential_reader_finds_the_next_batch_without_the_index() -> None:
    rig = LogRig()
    for number in range(5):
        rig.append(batch_of(b"%d" % number * 50))
    size = rig.log.size_bytes // 5
    in_order = [rig.log.read(offset, 1, up_to=5) for offset in range(5)]
    assert [found.position for found in in_order if found] == [number * size for number in range(5)]
    # The remembered position of a truncated batch does not apply to the batch in its place.
    assert rig.log.read(2, 1, up_to=5) is not None
    truncate_to(rig.log, 3)
    rig.append(batch_of(b"anew"))
    found = rig.log.read(3, 1, up_to=4)
    assert found is not None
    assert (found.position, found.position + found.size_bytes) == (3 * size, rig.log.size_bytes)


def test_an_offset_removed_by_compaction_is_found_in_the_next_batch() -> None:
    rig = LogRig()
    rig.append(batch_of(b"a"))
    later = batch_of(b"b")
    assign(later, 7, 0)
    append_as_follower(rig.log, later, 0)
    assert rig.log.read(0, 1, up_to=8) is not None
    found = rig.log.read(1, 1, up_to=8)
    assert found is not None
    assert found.position > 0


@pytest.mark.parametrize("number", [0, 3, 4, 5, 6, 18])
@pytest.mark.parametrize("bit", [0, 1, 2, 3, 4, 5, 7, 29, 31, 40, 63])
def test_readers_of_a_damaged_offset_get_an_error_and_others_are_served(
    number: int, bit: int
) -> None:
    rig = filled(40, TopicConfig(index_interval_bytes=200))
    rig.restart()
    assert len(rig.read_all()) == 80
    path = next(iter(rig.log.segments)).path()
    positions = [at for at, _ in batches(rig.files.read(path))]
    rig.fake.flip_bit(path, (positions[number] + 7 - bit // 8) * 8 + bit % 8)
    for _ in range(2):
        # With the lowest bit the second record's offset is in the batch: nothing contradicts that.
        for offset in (2 * number, 2 * number + 1)[: 1 if bit == 0 else 2]:
            with pytest.raises(CorruptBatch):
                rig.log.read(offset, 1, up_to=80)
    served = rig.log.read(60, 1_000, up_to=80)
    assert served is not None
    assert read_header(served.read()).base_offset == 60
    for each in range(max(number - 5, 0)):
        before = rig.log.read(2 * each, 1, up_to=80)
        assert before is not None
        assert read_header(before.read()).base_offset == 2 * each


@pytest.mark.parametrize("times", [(5, 50, 10, 200), (0, 10, 20, 30)])
def test_a_truncation_keeps_timestamps_after_the_index_interval_was_lowered(
    times: tuple[int, ...],
) -> None:
    rig = LogRig(TopicConfig(index_interval_bytes=4096))
    for number, at in enumerate(times):
        rig.append(batch_of(b"%d" % number, timestamp=at))
    rig.config = TopicConfig(index_interval_bytes=1)
    rig.restart()
    assert offset_for_timestamp(rig.log, max(times)) == (max(times), 3)  # loads the indexes
    rig.store.truncate({PARTITION: 3})
    assert rig.log.end_offset == 3
    newest = max(times[:3])
    assert offset_for_timestamp(rig.log, newest) == (newest, times.index(newest))
    assert [offset for offset, _ in rig.read_all()] == [0, 1, 2]


def test_a_failed_truncation_at_a_damaged_batch_changes_nothing() -> None:
    rig = filled(40, TopicConfig(index_interval_bytes=200))
    rig.log.roll(0)
    rig.append(batch_of(b"behind"))
    first, second = (each.base_offset for each in rig.log.segments)
    path = next(iter(rig.log.segments)).path()
    position = [at for at, _ in batches(rig.files.read(path))][30]
    rig.fake.flip_bit(path, (position + 7) * 8 + 5)
    for _ in range(2):
        with pytest.raises(CorruptBatch):
            truncate_to(rig.log, 61)
    assert [each.base_offset for each in rig.log.segments] == [first, second]
    assert rig.log.end_offset == second + 1
