"""The state of a log after a crash, a clean restart, or damage."""

import errno
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from struct import pack
from zlib import crc32

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.follower_append import append_as_follower
from penstock.log.log_dir import RECOVERY_POINTS
from penstock.log.old_format import OldFormat
from penstock.log.old_segments import delete_old_segments
from penstock.log.time_search import offset_for_timestamp, offset_of_max_timestamp
from penstock.log.truncation import truncate_to
from penstock.record.batch import CorruptBatch
from penstock.testing.files import Choice, FakeFiles, lose_everything
from penstock.testing.logs import PARTITION, ROOT, LogRig, batch_of

CONFIG = TopicConfig(segment_bytes=1_000, index_interval_bytes=200, segment_index_bytes=1_200)
LOG_PATH = ROOT / "d0" / "orders-0"
RECORDS = 60


def filled(count: int = RECORDS, config: TopicConfig = CONFIG) -> LogRig:
    rig = LogRig(config)
    for n in range(count):
        rig.append(
            batch_of(b"%d" % n, timestamp=n * 10, producer_id=9, sequence=n), leader_epoch=n // 20
        )
    return rig


def expected(count: int = RECORDS) -> list[tuple[int, bytes]]:
    return [(n, b"%d" % n) for n in range(count)]


class CountingFiles(FakeFiles):
    """Counts the reads of segment files."""

    reads = 0

    def operate(self, operation: str, path: Path) -> None:
        super().operate(operation, path)
        if operation == "read" and path.suffix == ".log":
            self.reads += 1


def test_a_flushed_batch_survives_a_crash() -> None:
    rig = filled()
    rig.flush()
    rig.append(batch_of(b"not flushed", producer_id=9, sequence=RECORDS))
    rig.crash()
    assert rig.read_all() == expected()
    assert rig.log.end_offset == RECORDS


def test_a_clean_restart_keeps_everything_without_checking_the_batches() -> None:
    files = CountingFiles()
    rig = LogRig(CONFIG, files)
    for n in range(RECORDS):
        rig.append(batch_of(b"%d" % n, timestamp=n * 10), leader_epoch=n // 20)
    rig.store.close()
    files.reads = 0
    rig.store = rig._open_store()
    assert files.reads < 20, "only the tail of the active segment is looked at"
    assert rig.log.recovery_point == RECORDS
    assert rig.read_all() == expected()
    assert rig.log.epochs.entries == [(0, 0), (1, 20), (2, 40)]
    assert offset_for_timestamp(rig.log, 333) == (340, 34)


def test_a_restart_restores_the_producers() -> None:
    for stop in (LogRig.restart, LogRig.crash):
        rig = filled()
        rig.flush()
        stop(rig)
        again = rig.append(batch_of(b"x", producer_id=9, sequence=RECORDS - 1))
        assert (again.duplicate, again.first_offset) == (True, RECORDS - 1)


def test_a_torn_last_batch_is_cut_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    rig = filled()
    rig.flush()
    rig.append(batch_of(b"torn" * 20, producer_id=9, sequence=RECORDS))
    with caplog.at_level(logging.WARNING):
        rig.crash(lambda kind, count: count // 2 if kind == "bytes" else 0)
    assert rig.read_all() == expected()
    assert "cut" in caplog.text
    assert rig.append(batch_of(b"next", producer_id=9, sequence=RECORDS)).first_offset == RECORDS


def test_blocks_that_never_reached_the_disk_are_cut() -> None:
    rig = filled()
    rig.flush()
    rig.append(batch_of(b"zeros" * 20, producer_id=9, sequence=RECORDS))
    rig.crash(lambda kind, count: count if kind == "zeros" else 0)
    assert rig.read_all() == expected()


def old_message(offset: int, magic: int) -> bytes:
    """A message of Kafka 0.9 (magic 0) or 0.10 (1) without a key."""
    timestamp = pack(">q", 5) if magic else b""
    body = pack(">bb", magic, 0) + timestamp + pack(">ii", -1, 3) + b"old"
    return pack(">qiI", offset, 4 + len(body), crc32(body)) + body


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("records", [0, 3])
def test_messages_of_an_old_format_are_not_cut_as_damage(magic: int, records: int) -> None:
    rig = filled(records)
    rig.store.close()
    file = rig.files.open(rig.log.segments.active.path())
    file.append(old_message(records, magic))
    before = file.read(0, 10_000)
    with pytest.raises(OldFormat, match=f"format v{magic} at byte"):
        rig._open_store()
    assert file.read(0, 10_000) == before


def test_a_damaged_message_of_an_old_format_is_cut_as_any_damage() -> None:
    rig = filled(3)
    rig.store.close()
    file = rig.files.open(rig.log.segments.active.path())
    file.append(old_message(3, magic=1)[:-1] + b"?")
    rig.store = rig._open_store()
    assert rig.read_all() == expected(3)


@pytest.mark.parametrize("offset", [0, 17, 44, 59])
def test_damage_after_the_recovery_point_is_cut_and_earlier_records_stay(offset: int) -> None:
    rig = filled()
    rig.log.flush()  # the recovery point is not checkpointed: everything is scanned
    segment = rig.log.segments.floor(offset)
    assert segment is not None
    found = segment.find(offset)
    assert found is not None
    path, bit = segment.path(), (found[0] + 65) * 8
    rig.crash(damage=lambda: rig.fake.flip_bit(path, bit))
    assert rig.read_all() == expected(offset)
    assert rig.log.producers.map_end_offset == offset
    again = batch_of(b"next", producer_id=9, sequence=offset)
    assert rig.append(again, leader_epoch=2).first_offset == offset
    rig.flush()
    rig.crash()
    assert rig.read_all() == [*expected(offset), (offset, b"next")]


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("bit", [*range(64), *range(96, 128)])
def test_a_flipped_bit_in_an_offset_or_epoch_is_detected(bit: int, policy: str) -> None:
    """No CRC covers these fields: only the neighbouring batches reveal the damage."""
    offset, byte = 45, bit // 8
    rig = filled(config=replace(CONFIG, cleanup_policy=(policy,)))
    rig.log.flush()
    segment = rig.log.segments.floor(offset)
    assert segment is not None
    found = segment.find(offset)
    assert found is not None
    rig.crash(damage=lambda: rig.fake.flip_bit(segment.path(), (found[0] + byte) * 8 + bit % 8))
    left = rig.read_all()
    assert left == expected(len(left))
    # A neighbour may be cut if nothing shows which of the two was changed.
    assert offset - 1 <= len(left) <= offset
    assert rig.log.epochs.latest == 2


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_gap_before_the_last_batch_is_reported(policy: str) -> None:
    """The batch may have been given another offset on the disk: no later one reveals that."""
    rig = filled(config=replace(CONFIG, cleanup_policy=(policy,)))
    rig.flush()
    rig.crash()
    assert rig.log.unverified_gaps == []
    segment = rig.log.segments.active
    found = segment.find(RECORDS - 1)
    assert found is not None
    rig.crash(damage=lambda: rig.fake.flip_bit(segment.path(), (found[0] + 7) * 8 + 2))
    assert (rig.log.unverified_gaps, rig.log.end_offset) == ([RECORDS - 1], RECORDS + 4)
    assert rig.log.high_watermark <= RECORDS - 1
    assert rig.store.had_unclean_shutdown is (policy == "delete"), "compaction leaves gaps"
    truncate_to(rig.log, RECORDS + 3)
    assert (rig.log.unverified_gaps, rig.log.end_offset) == ([], RECORDS - 1)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_gaps_between_synced_batches_are_not_reported(policy: str) -> None:
    leader = filled()
    rig = LogRig(replace(CONFIG, cleanup_policy=(policy,)))

    def copy(*offsets: int) -> None:
        for offset in offsets:
            batch = leader.log.read(offset, 1, up_to=leader.log.end_offset)
            assert batch is not None
            append_as_follower(rig.log, batch.read(), 0)

    copy(3, 4, 8, 9)
    rig.flush()
    copy(10, 11)
    rig.crash(lambda _kind, count: count)
    assert rig.log.unverified_gaps == []
    assert not rig.store.had_unclean_shutdown
    rig.flush()
    copy(14, 15)
    rig.crash(lambda _kind, count: count)
    assert rig.log.unverified_gaps == [12]


def test_a_gap_before_the_log_s_start_is_not_reported() -> None:
    """All its records were deleted: there is nothing to compare with the leader's log."""
    rig = filled()
    rig.flush()
    segment = rig.log.segments.active
    found = segment.find(RECORDS - 1)
    assert found is not None
    rig.crash(damage=lambda: rig.fake.flip_bit(segment.path(), (found[0] + 7) * 8 + 2))
    rig.log.unverified_gaps = []
    rig.log.advance_high_watermark(rig.log.end_offset)
    rig.log.maybe_increment_log_start(rig.log.end_offset)
    rig.flush()
    rig.crash()
    assert rig.log.log_start_offset == rig.log.end_offset == RECORDS + 4
    assert rig.log.unverified_gaps == []


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_the_lost_end_of_a_closed_segment_is_reported_until_it_is_verified(
    is_empty: bool, policy: str
) -> None:
    """A loss of power kept the name of the segment after it, with or without batches."""
    rig = filled(config=replace(CONFIG, cleanup_policy=(policy,)))
    rig.log.flush()
    closed, active = list(rig.log.segments)[-2:]
    lost = active.base_offset - 1
    found = closed.find(lost)
    assert found is not None
    position = found[0]

    def damage() -> None:
        rig.files.open(closed.path()).truncate(position)
        if is_empty:
            rig.files.open(active.path()).truncate(0)

    rig.crash(damage=damage)
    end = active.base_offset if is_empty else RECORDS
    for _ in range(3):
        assert (rig.log.unverified_gaps, rig.log.end_offset) == ([lost], end)
        rig.flush()
        rig.restart()
    rig.log.unverified_gaps = []
    rig.restart()
    assert rig.store.was_closed
    assert rig.log.unverified_gaps == []


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("known", ["recovery point", "old recovery point", "nothing"])
def test_gaps_left_by_compaction_are_not_damage_under_any_policy(policy: str, known: str) -> None:
    leader = filled()
    rig = LogRig(replace(CONFIG, cleanup_policy=(policy,)))
    if known == "old recovery point":
        rig.flush()
    kept = [0, 3, 4, 20, 21, 40, 58]
    for offset in kept:  # as a replica copies a compacted log
        batch = leader.log.read(offset, 1, up_to=leader.log.end_offset)
        assert batch is not None
        append_as_follower(rig.log, batch.read(), 0)
        if offset == 4:
            rig.log.roll(0)
    rig.log.flush()
    if known == "recovery point":
        rig.flush()
    rig.crash()
    assert rig.read_all() == [(offset, b"%d" % offset) for offset in kept]
    assert rig.log.end_offset == 59


def test_damage_before_the_recovery_point_is_reported_to_its_readers() -> None:
    rig = filled()
    rig.flush()
    segment = rig.log.segments.first
    path = segment.path()
    rig.crash(damage=lambda: rig.fake.flip_bit(path, 9 * 8 + 2))  # the first batch's length
    with pytest.raises(CorruptBatch, match="no batch begins at byte"):
        rig.read_all()
    tail = rig.log.segments.active.base_offset
    assert rig.log.read(tail, 1, up_to=RECORDS) is not None


def test_a_flipped_bit_of_an_offset_is_noticed_after_a_clean_stop() -> None:
    """By reads, retention and startup, none of which checks every batch."""
    for number in (0, -1):  # a closed segment, and the active one
        for bit in range(32):  # high bits; low ones could pass for a gap
            rig = filled()
            rig.store.close()
            segment = list(rig.log.segments)[number]
            last = segment.find((segment.base_offset if number else 0) + segment.size_bytes // 80)
            assert last is not None
            rig.fake.flip_bit(segment.path(), last[0] * 8 + bit)
            rig.store = rig._open_store()
            if number:
                assert rig.log.end_offset <= RECORDS
            else:
                assert rig.log.end_offset == RECORDS
                with pytest.raises(CorruptBatch):
                    rig.read_all()
                rig.log.set_high_watermark(RECORDS)
                rig.log.config = replace(CONFIG, retention_ms=1)
                assert delete_old_segments(rig.log, 1 << 60)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("harm", ["missing", "empty", "short", "ragged", "flipped", "zeros"])
def test_damaged_indexes_are_rebuilt(suffix: str, harm: str) -> None:
    rig = filled()
    rig.store.close()
    for path in list(rig.fake.walk(LOG_PATH)):
        if path.suffix == suffix:
            file = rig.files.open(path)
            match harm:
                case "missing":
                    rig.files.remove(path)
                case "empty":
                    file.truncate(0)
                case "short":
                    file.truncate(
                        file.size // 24 * 12 if suffix == ".timeindex" else file.size // 16 * 8
                    )
                case "ragged":
                    file.truncate(max(file.size - 1, 0))
                case "flipped":
                    for at in range(0, file.size * 8, 7):
                        rig.fake.flip_bit(path, at)
                case _:
                    file.truncate(file.size + 24)
    rig.store = rig._open_store()
    assert rig.read_all() == expected()
    for n in range(RECORDS):
        part = rig.log.read(n, 1, up_to=RECORDS)
        assert part is not None
        assert int.from_bytes(part.read()[:8]) == n
    if (suffix, harm) != (".timeindex", "flipped"):  # plausible wrong times cannot be detected
        assert offset_for_timestamp(rig.log, 333) == (340, 34)
        assert offset_of_max_timestamp(rig.log) == ((RECORDS - 1) * 10, RECORDS - 1)


@pytest.mark.parametrize("kept_bytes", [0, 8, 800])
def test_a_short_offset_index_is_rebuilt_from_the_batches(kept_bytes: int) -> None:
    """Otherwise reads would walk over the batches up to the newest timestamp, on the loop."""
    rig = LogRig(TopicConfig(index_interval_bytes=4096))
    for n in range(300):
        rig.append(batch_of(bytes(8_000), timestamp=n))
    rig.store.close()
    index = LOG_PATH / f"{0:020d}.index"
    whole = rig.files.read(index)
    rig.files.open(index).truncate(kept_bytes)
    rig.store = rig._open_store()
    assert offset_of_max_timestamp(rig.log) == (299, 299)
    rig.store.close()
    assert rig.files.read(index) == whole


def test_a_run_of_batches_that_kafka_indexed_as_one_is_no_damage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rebuild would walk over all batches of each such segment, on the loop."""
    rig = LogRig(TopicConfig(index_interval_bytes=4096))
    for n in range(300):
        rig.append(batch_of(bytes(8_000), timestamp=n))
    rig.store.close()
    offsets, times = (LOG_PATH / f"{0:020d}{suffix}" for suffix in (".index", ".timeindex"))
    rig.files.open(offsets).truncate(100 * 8)
    newest = rig.files.read(times)[-12:]
    file = rig.files.open(times)
    file.truncate(100 * 12)
    file.append(newest)
    caplog.clear()
    rig.store = rig._open_store()
    assert offset_of_max_timestamp(rig.log) == (299, 299)
    assert len(rig.read_all()) == 300
    assert "rebuilt" not in caplog.text


def test_a_damaged_snapshot_is_replaced_by_a_replay() -> None:
    rig = filled()
    rig.store.close()
    for path in rig.fake.walk(LOG_PATH):
        if path.suffix == ".snapshot":
            rig.fake.flip_bit(path, 100)
    rig.store = rig._open_store()
    assert rig.log.producers.producers[9].last_sequence == RECORDS - 1


def with_damaged_marker() -> LogRig:
    """A crash left an invalid marker before the recovery point, and no snapshot."""
    rig = LogRig(TopicConfig(segment_bytes=5_000))
    rig.append(batch_of(b"0", producer_id=9, sequence=0, transactional=True))
    rig.end_transaction(9, committed=True)
    end = rig.log.size_bytes
    for n in range(1, 10):
        rig.append(batch_of(b"%d" % n, producer_id=9, sequence=n))
    rig.log.roll(0)
    rig.append(batch_of(b"10", producer_id=9, sequence=10))
    rig.flush()
    path = rig.log.path

    def harm() -> None:
        rig.fake.flip_bit(path / f"{0:020d}.log", (end - 1) * 8)
        for name in rig.files.names(path):
            if name.endswith(".snapshot"):
                rig.files.remove(path / name)
        rig.files.sync_dir(path)

    rig.crash(damage=harm)
    return rig


def test_a_damaged_marker_does_not_stop_the_startup(caplog: pytest.LogCaptureFixture) -> None:
    rig = with_damaged_marker()
    assert rig.log.end_offset == 12
    assert "producer state is incomplete" in caplog.text


def test_a_log_with_a_damaged_marker_can_be_truncated() -> None:
    rig = with_damaged_marker()
    rig.log.set_high_watermark(12)
    rig.store.truncate({PARTITION: 7})
    assert (rig.log.end_offset, rig.log.high_watermark) == (7, 7)
    assert rig.store.dirs[0].checkpoints.read(RECOVERY_POINTS) == {PARTITION: 7}


def test_damaged_checkpoints_are_rebuilt_from_the_log(caplog: pytest.LogCaptureFixture) -> None:
    rig = filled()
    rig.flush()

    def damage() -> None:
        for path in rig.fake.walk(ROOT / "d0"):
            if path.name.endswith("checkpoint"):
                rig.files.open(path).truncate(3)

    rig.crash(damage=damage)
    assert rig.read_all() == expected()
    assert rig.log.epochs.entries == [(0, 0), (1, 20), (2, 40)]
    assert "ignored" in caplog.text


def test_epochs_of_lost_batches_are_forgotten() -> None:
    rig = filled()
    rig.flush()
    rig.append(batch_of(b"lost", producer_id=9, sequence=RECORDS), leader_epoch=7)
    rig.crash()
    assert rig.log.epochs.latest == 2


def test_open_transactions_and_aborted_ones_survive_a_crash() -> None:
    rig = LogRig(CONFIG)
    for n in range(12):
        rig.append(batch_of(b"x" * 50, producer_id=n, sequence=0, transactional=True))
        if n != 5:
            rig.end_transaction(n, committed=n % 2 == 0)
    end = rig.log.end_offset
    aborted = rig.log.aborted_between(0, end)
    first_unstable = rig.log.producers.producers[5].current_txn_first_offset
    assert len(rig.log.segments) > 1
    rig.log.flush()
    rig.crash()  # no checkpoint was written: everything is rebuilt
    rig.log.advance_high_watermark(end)
    assert rig.log.aborted_between(0, end) == aborted
    assert rig.log.last_stable_offset == first_unstable


def test_a_follower_that_truncated_and_crashed_does_not_trust_what_it_did_not_sync() -> None:
    rig = filled()
    rig.flush()
    rig.store.truncate({PARTITION: 30})
    for n in range(30, 50):
        rig.append(batch_of(b"new %d" % n, producer_id=10, sequence=n - 30), leader_epoch=9)
    rig.crash(lambda kind, count: count if kind == "names" else 0)
    assert rig.read_all() == expected(30)


def test_deleted_segments_do_not_reappear_after_a_crash() -> None:
    config = TopicConfig(segment_bytes=1_000, retention_ms=100, segment_index_bytes=1_200)
    rig = filled(config=config)
    rig.log.advance_high_watermark(RECORDS)
    rig.flush()
    assert delete_old_segments(rig.log, now_ms=500) > 0
    start = rig.log.log_start_offset
    rig.flush()
    rig.crash()
    assert rig.log.log_start_offset == start
    assert rig.read_all() == expected()[start:]
    assert not any(name.endswith(".deleted") for name in rig.files.names(LOG_PATH))


def test_a_log_that_ends_before_its_start_restarts_at_its_start() -> None:
    rig = filled()
    rig.flush()
    rig.log.advance_high_watermark(RECORDS)
    rig.log.maybe_increment_log_start(50)
    rig.flush()

    def damage() -> None:
        for path in list(rig.fake.walk(LOG_PATH)):
            if path.suffix == ".log":
                rig.files.open(path).truncate(10)
        rig.files.remove(ROOT / "d0" / "recovery-point-offset-checkpoint")

    rig.crash(damage=damage)
    assert (rig.log.log_start_offset, rig.log.end_offset) == (50, 50)


def test_a_flipped_bit_in_an_index_skips_no_record() -> None:
    sizes = {}
    rig = filled(40, TopicConfig(segment_bytes=4_000, index_interval_bytes=200))
    rig.store.close()
    for path in rig.fake.walk(LOG_PATH):
        if path.suffix == ".index":
            sizes[path] = rig.files.size(path)
    for path, size in sizes.items():
        for at in range(size * 8):
            rig.fake.flip_bit(path, at)
            rig.store = rig._open_store()
            assert [offset for offset, _ in rig.read_all()] == list(range(40)), (path.name, at)
            rig.store.close()
            if at % 8 == 7 and rig.files.size(path) != size:
                raise AssertionError("the index was not made as it had been")


def test_segments_written_after_a_truncation_are_checked_although_others_were_synced() -> None:
    rig = filled()
    rig.flush()
    rig.store.truncate({PARTITION: 20})
    for n in range(20, 60):
        rig.append(batch_of(b"new %d" % n, producer_id=10, sequence=n - 20), leader_epoch=9)
    assert len(rig.log.segments) > 2
    rig.crash(lambda kind, count: count // 2 if kind == "bytes" else count)
    found = rig.read_all()
    assert found[:20] == expected(20)
    assert found[20:] == [(n, b"new %d" % n) for n in range(20, rig.log.end_offset)]


def test_a_snapshot_of_truncated_records_is_not_reused() -> None:
    rig = filled(58)
    rig.restart()  # leaves a snapshot at 58
    rig.store.truncate({PARTITION: 50})
    for n in range(20):
        rig.append(batch_of(b"new", producer_id=10, sequence=n), leader_epoch=9)
    rig.store.truncate({PARTITION: 60})
    assert rig.log.producers.producers[10].last_sequence == 9
    assert rig.log.producers.producers[9].last_sequence == 49


def test_the_last_time_index_entry_of_a_closed_segment_is_its_newest_timestamp() -> None:
    rig = filled()
    newest = {segment.path(): segment.newest.timestamp for segment in rig.log.segments}
    rig.store.close()
    for path, timestamp in newest.items():
        entries = rig.files.read(path.with_suffix(".timeindex"))
        assert int.from_bytes(entries[-12:-4]) == timestamp


def test_a_torn_end_of_one_segment_is_not_hidden_by_the_next() -> None:
    rig = LogRig(CONFIG)
    rig.flush()
    rig.append(batch_of(b"torn" * 9))
    torn = rig.log.segments.active.file
    rig.log.roll(0)
    rig.append(batch_of(b"after it"))
    active = rig.log.segments.active
    active.file.sync()  # the system may write pages back in any order
    torn.truncate(torn.size - 1)
    torn.sync()
    rig.files.sync_dir(rig.log.path)
    rig.crash()
    assert rig.log.end_offset == 0
    assert rig.read_all() == []


def test_a_loss_of_power_during_a_flush_leaves_no_hole() -> None:
    for step in range(1, 100):
        rig = filled()
        rig.fake.fail_at(rig.fake.operations + step, errno.EIO)
        with suppress(StorageError):
            rig.log.flush()
        rig.crash(lambda kind, count: count if kind == "names" else 0)
        found = rig.read_all()
        assert found == expected(len(found)), step


def test_rebuilt_indexes_are_not_trusted_before_they_are_synced() -> None:
    rig = LogRig(CONFIG)
    for n in range(3):
        rig.append(batch_of(b"x", producer_id=n, sequence=0, transactional=True))
        rig.end_transaction(n, committed=False)
    rig.flush()
    rig.crash()
    rig.log.roll(0)
    rig.crash(lambda kind, count: count if kind == "names" else 0)
    assert len(rig.log.aborted_between(0, 6)) == 3


def test_truncated_records_do_not_reappear_after_the_next_crash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = filled(5)
    rig.log.flush()
    rig.crash(damage=lambda: rig.fake.flip_bit(LOG_PATH / f"{0:020d}.log", 65 * 8))
    assert "cut" in caplog.text
    caplog.clear()
    rig.crash()
    assert "cut" not in caplog.text
    assert rig.log.segments.first.size_bytes == 0


def test_segments_after_a_truncation_point_do_not_follow_later_appends() -> None:
    rig = filled()
    rig.log.flush()
    second = list(rig.log.segments)[1].base_offset
    rig.crash(damage=lambda: rig.fake.flip_bit(LOG_PATH / f"{0:020d}.log", 65 * 8))
    written = [(n, b"x") for n in range(second)]
    for _, value in written:
        rig.append(batch_of(value))
    rig.crash(lambda kind, count: count if kind == "bytes" else 0)
    assert rig.read_all() == written


@pytest.mark.parametrize("choose", [lose_everything, lambda _kind, count: count])
def test_a_crash_during_recovery_leaves_no_hole_in_a_compacted_log(choose: Choice) -> None:
    compacted = replace(CONFIG, cleanup_policy=("compact",))
    for step in range(1, 200):
        rig = filled(30, compacted)
        rig.log.flush()
        rig.fake.crash()
        rig.fake.flip_bit(LOG_PATH / f"{0:020d}.log", (rig.log.segments.first.size_bytes - 3) * 8)
        rig.fake.fail_at(rig.fake.operations + step, errno.EIO)
        with suppress(StorageError):
            rig._open_store()
        rig.crash(choose)
        found = rig.read_all()
        assert found == expected(len(found))
        assert 0 < len(found) < 20


def test_epochs_replaced_after_a_truncation_are_restored_from_the_batches() -> None:
    rig = filled(10)
    for n in range(10, 14):
        rig.append(batch_of(b"diverged", producer_id=9, sequence=n), leader_epoch=5)
    rig.flush()
    rig.store.truncate({PARTITION: 10})
    for leader_epoch in (4, 4, 6):  # as the new leader has them
        rig.append(batch_of(b"x"), leader_epoch=leader_epoch)
    rig.crash(lambda kind, count: count if kind == "bytes" else 0)
    assert rig.log.epochs.entries == [(0, 0), (4, 10), (6, 12)]


def test_an_epoch_without_batches_is_forgotten_by_a_clean_restart() -> None:
    rig = filled()
    rig.log.assign_epoch(9, rig.log.end_offset)
    rig.restart()
    assert rig.log.epochs.entries == [(0, 0), (1, 20), (2, 40)]


def test_recovered_records_are_flushed_soon() -> None:
    rig = filled(5)
    rig.crash(lambda _kind, count: count)
    assert (rig.log.recovery_point, rig.log.end_offset) == (0, 5)
    assert rig.log.is_flush_due(0)
    rig.log.flush()
    assert not rig.log.is_flush_due(0)
    rig.restart()
    assert not rig.log.is_flush_due(0)
