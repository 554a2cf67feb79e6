"""What remains of one batch when it is compacted."""

from dataclasses import replace

import pytest

from penstock.config.value import LONG_MAX
from penstock.log.compaction.offset_map import BYTES_PER_KEY, DIGEST_BYTES, OffsetMap, digest
from penstock.log.compaction.rewrite import BatchRetention, CleaningRound, rewritten
from penstock.log.compaction.spans import spans
from penstock.record.batch import BatchHeader, crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records
from penstock.types import Buffer

NOW, RETENTION = 10_000, 500
ORDINARY = BatchRetention()
LIMIT = 1 << 20


def cleaning(newest: dict[bytes, int], latest: int = 100, now_ms: int = NOW) -> CleaningRound:
    offsets = OffsetMap(1 << 20)
    for key, offset in newest.items():
        offsets.put(key, offset)
    offsets.latest_offset = latest
    return CleaningRound(offsets, now_ms, RETENTION, LIMIT)


def made(
    *pairs: tuple[bytes | None, bytes | None], codec: Codec = Codec.NONE, at: int = 10
) -> bytearray:
    return build_batch(
        [Record(at + n, 1000 + n, key, value, []) for n, (key, value) in enumerate(pairs)],
        codec=codec,
        base_offset=at,
        leader_epoch=3,
        producer_id=7,
        producer_epoch=1,
        base_sequence=40,
    )


def rewrite(
    batch: Buffer, this: CleaningRound, retention: BatchRetention = ORDINARY
) -> Buffer | None:
    return rewritten(batch, read_header(batch), retention, this)


def read(batch: Buffer | None) -> tuple[BatchHeader, list[Record]]:
    assert batch is not None
    header = read_header(batch)
    assert crc_matches(batch, header)
    return header, list(records(batch, header, LIMIT))


def test_a_batch_that_keeps_all_its_records_is_unchanged() -> None:
    batch = made((b"a", b"1"), (b"b", b"2"))
    assert rewrite(batch, cleaning({b"a": 10, b"b": 11})) is batch


@pytest.mark.parametrize("codec", list(Codec))
def test_a_record_with_a_newer_one_of_its_key_is_removed(codec: Codec) -> None:
    batch = made((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), codec=codec)
    old = read_header(batch)
    header, kept = read(rewrite(batch, cleaning({b"a": 50, b"b": 11, b"c": 60})))
    assert kept == [Record(11, 1001, b"b", b"2", [])]
    assert (header.base_offset, header.last_offset) == (10, 12)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 40)
    assert (header.codec, header.leader_epoch) == (codec, old.leader_epoch)
    assert (header.last_sequence, header.max_timestamp) == (42, 1001)


def test_a_batch_that_loses_all_its_records_is_removed_or_kept_empty() -> None:
    batch = made((b"a", b"1"), (b"b", b"2"))
    this = cleaning({b"a": 50, b"b": 51})
    assert rewrite(batch, this) is None
    empty = rewrite(batch, this, BatchRetention(stays_empty=True))
    header, kept = read(empty)
    assert kept == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 11, 41)
    assert empty is not None
    assert rewrite(empty, this, BatchRetention(stays_empty=True)) is empty
    assert rewrite(empty, this) is None


def test_records_without_a_key_are_removed() -> None:
    _, kept = read(rewrite(made((None, b"1"), (b"b", b"2")), cleaning({b"b": 11})))
    assert [record.key for record in kept] == [b"b"]


def test_records_past_the_map_stay() -> None:
    batch = made((b"a", b"1"), (None, b"2"), (b"a", b"3"))
    assert rewrite(batch, cleaning({}, latest=9)) is batch
    _, kept = read(rewrite(batch, cleaning({b"a": 12}, latest=10)))
    assert [record.offset for record in kept] == [11, 12]


@pytest.mark.row("A102")
def test_a_tombstone_gets_a_horizon_and_is_removed_after_it() -> None:
    newest = {b"a": 10, b"b": 11}
    batch = made((b"a", None), (b"b", b"2"))
    with_horizon = rewrite(batch, cleaning(newest))
    header, kept = read(with_horizon)
    assert header.delete_horizon_ms == NOW + RETENTION
    assert kept == [Record(10, 1000, b"a", None, []), Record(11, 1001, b"b", b"2", [])]
    assert with_horizon is not None
    before = cleaning(newest, now_ms=NOW + RETENTION - 1)
    assert rewrite(with_horizon, before) is with_horizon
    header, kept = read(rewrite(with_horizon, cleaning(newest, now_ms=NOW + RETENTION)))
    assert kept == [Record(11, 1001, b"b", b"2", [])]
    assert header.delete_horizon_ms == NOW + RETENTION
    assert header.max_timestamp == 1001


def test_a_horizon_keeps_the_append_time() -> None:
    batch = build_batch(
        [Record(0, 5, b"a", None, []), Record(1, 6, b"b", b"2", [])], log_append_time_ms=777
    )
    header, kept = read(rewrite(batch, cleaning({b"a": 0, b"b": 9})))
    assert header.is_log_append_time
    assert kept == [Record(0, 777, b"a", None, [])]


@pytest.mark.parametrize("timestamp", [NOW - LONG_MAX, -2, -1, 0, NOW, LONG_MAX])
@pytest.mark.parametrize("retention_ms", [0, RETENTION, LONG_MAX])
def test_a_tombstone_of_any_age_stays_readable_however_long_it_is_retained(
    timestamp: int, retention_ms: int
) -> None:
    batch = build_batch([Record(0, timestamp, b"a", None, [])])
    round_ = cleaning({b"a": 0})
    header, kept = read(rewrite(batch, replace(round_, delete_retention_ms=retention_ms)))
    assert kept == [Record(0, timestamp, b"a", None, [])]
    assert header.delete_horizon_ms is not None
    assert NOW <= header.delete_horizon_ms <= NOW + retention_ms


def test_aborted_records_are_removed_for_any_key() -> None:
    batch = made((b"a", b"1"))
    aborted = BatchRetention(loses_records=True)
    assert rewrite(batch, cleaning({b"a": 10}), aborted) is None
    _, kept = read(
        rewrite(batch, cleaning({b"a": 10}), BatchRetention(loses_records=True, stays_empty=True))
    )
    assert kept == []


def test_a_marker_without_records_gets_a_horizon() -> None:
    marker = build_marker(
        producer_id=7,
        producer_epoch=1,
        committed=True,
        coordinator_epoch=2,
        timestamp=900,
        base_offset=20,
    )
    assert rewrite(marker, cleaning({})) is marker
    header, kept = read(rewrite(marker, cleaning({}), BatchRetention(ends_nothing=True)))
    assert header.delete_horizon_ms == NOW + RETENTION
    assert (header.is_control, header.is_transactional) == (True, True)
    assert kept[0].timestamp == 900
    past = BatchRetention(loses_records=True, ends_nothing=True)
    assert rewrite(marker, cleaning({}), past) is None


def test_invalid_spans_are_refused() -> None:
    batch = made((b"a", b"1"), (b"b", b"2"))
    data = bytes(batch[61:])
    assert [span.key for span in spans(data, 2)] == [b"a", b"b"]
    for damaged, count in ((data[:-1], 2), (data + b"\0", 2), (data, 3), (data, 1), (b"\x01", 1)):
        with pytest.raises(InvalidRecord):
            list(spans(damaged, count))


def test_short_keys_are_stored_as_they_are_and_cannot_equal_the_hash_of_a_long_one() -> None:
    long = b"k" * 100
    assert digest(b"short") == b"short"
    assert len(digest(long)) == DIGEST_BYTES
    assert digest(digest(long)) != digest(long)


def test_a_full_map_accepts_known_keys_only() -> None:
    offsets = OffsetMap(2 * BYTES_PER_KEY)
    assert offsets.put(b"a", 0)
    assert offsets.put(b"b", 1)
    assert not offsets.put(b"c", 2)
    assert offsets.put(b"a", 3)
    assert offsets.latest_offset == 3
    assert offsets.supersedes(b"a", 0)
    assert not offsets.supersedes(b"a", 3)
    assert not offsets.supersedes(b"c", 0)
