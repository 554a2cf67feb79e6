"""Which produced batches are accepted, and what is corrected."""

from collections.abc import Callable

import pytest

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import BatchHeader, read_header
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.record.control import build_marker, read_marker
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records
from penstock.record.rules import BatchRules
from penstock.record.stamp import stamp_log_append_time, stamp_max_timestamp
from penstock.record.validate import Timestamps, check_produced, check_records, check_timestamps
from support.records.produced_batches import (
    MALFORMED,
    NOW_MS,
    PAIRS,
    REFUSED,
    of_bytes,
    produced,
    resealed,
)

RULES = BatchRules(max_message_bytes=10_000)
LIMIT_BYTES = 1 << 20


def refusal_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        call()
    return refusal.value.code


def checked(batch: bytes | bytearray, rules: BatchRules = RULES) -> BatchHeader:
    header = check_produced(batch, rules)
    timestamps = check_records(batch, header, keys_required=True, limit_bytes=LIMIT_BYTES)
    check_timestamps(timestamps, rules, NOW_MS)
    return header


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_clients_batch_is_accepted(codec: Codec, transactional: bool) -> None:
    batch = produced(
        codec=codec, producer_id=5, producer_epoch=0, base_sequence=0, transactional=transactional
    )
    assert checked(batch) == read_header(batch)


@pytest.mark.parametrize("wrong", REFUSED)
def test_an_invalid_batch_is_rejected(wrong: str) -> None:
    batch, code = REFUSED[wrong]
    assert refusal_of(lambda: checked(batch)) == code


def test_a_stray_byte_after_a_batch_is_not_part_of_it() -> None:
    assert checked(produced() + b"\0").size_bytes == len(produced())


def test_a_batch_of_max_message_bytes_is_accepted_and_one_byte_more_is_not() -> None:
    batch = produced()
    checked(batch, BatchRules(max_message_bytes=len(batch)))
    smaller = BatchRules(max_message_bytes=len(batch) - 1)
    assert refusal_of(lambda: checked(batch, smaller)) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("timestamp", "accepted"),
    [
        (NOW_MS - 1000, True),
        (NOW_MS - 1001, False),
        (NOW_MS + 2000, True),
        (NOW_MS + 2001, False),
        (-1, True),
    ],
)
def test_timestamps_must_be_within_the_topics_bounds(timestamp: int, accepted: bool) -> None:
    rules = BatchRules(
        max_message_bytes=10_000, timestamp_before_max_ms=1000, timestamp_after_max_ms=2000
    )
    if accepted:
        checked(produced(timestamp), rules)
    else:
        assert (
            refusal_of(lambda: checked(produced(timestamp), rules)) == ErrorCode.INVALID_TIMESTAMP
        )


def test_log_append_time_accepts_any_timestamp() -> None:
    checked(produced(1), BatchRules(max_message_bytes=10_000, log_append_time=True))


def test_a_producer_may_not_set_log_append_time_on_a_log_append_time_topic() -> None:
    batch = build_batch(numbered(PAIRS, NOW_MS), log_append_time_ms=NOW_MS)
    checked(batch)
    rules = BatchRules(max_message_bytes=10_000, log_append_time=True)
    assert refusal_of(lambda: checked(batch, rules)) == ErrorCode.INVALID_TIMESTAMP


def walk(batch: bytes | bytearray, *, keys_required: bool = False) -> Timestamps:
    return check_records(
        batch, read_header(batch), keys_required=keys_required, limit_bytes=LIMIT_BYTES
    )


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("claimed", [-1, 0, NOW_MS + 1])
def test_timestamps_come_from_the_records_and_not_from_the_header(
    codec: Codec, claimed: int
) -> None:
    times = [NOW_MS, NOW_MS - 70, NOW_MS + 300]
    batch = build_batch([Record(i, at, b"k", b"v", []) for i, at in enumerate(times)], codec=codec)
    stamp_max_timestamp(batch, claimed)
    assert (walk(batch).oldest, walk(batch).newest) == (NOW_MS - 70, NOW_MS + 300)


def test_a_header_cannot_hide_a_timestamp_in_the_far_future() -> None:
    batch = produced(NOW_MS + 3_600_001)
    stamp_max_timestamp(batch, NOW_MS)
    assert refusal_of(lambda: checked(batch)) == ErrorCode.INVALID_TIMESTAMP


def test_records_without_a_timestamp_stay_without_one() -> None:
    assert walk(produced(-1)).newest == -1
    assert walk(produced(-7)).newest == -1


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_a_timestamp_past_64_bits_is_rejected(base: int, delta: int) -> None:
    batch = build_batch([Record(0, 0, b"k", b"v", []), Record(1, delta, b"k", b"v", [])])
    batch[27:35] = base.to_bytes(8, "big", signed=True)
    assert refusal_of(lambda: walk(batch)) == ErrorCode.INVALID_TIMESTAMP
    stamp_log_append_time(batch, NOW_MS)  # which a topic with CreateTime takes off again
    assert refusal_of(lambda: walk(batch)) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    keyed = build_batch(numbered(PAIRS, NOW_MS), codec=codec)
    keyless = build_batch(numbered([*PAIRS, (None, b"v")], NOW_MS), codec=codec)
    walk(keyed, keys_required=True)
    walk(keyless)
    with pytest.raises(InvalidRecord, match="record 3 has no key"):
        walk(keyless, keys_required=True)


@pytest.mark.parametrize("size", [0, 63, 64, 8191, 8192])
def test_numbers_of_every_width_are_walked_and_read(size: int) -> None:
    count = 20_000 if size < 100 else 200
    written = [
        Record(i, NOW_MS + i * 1000, bytes(size), bytes(size), [("h" * (size % 999), bytes(size))])
        for i in range(count)
    ]
    batch = build_batch(written)
    walk(batch, keys_required=True)
    assert list(records(batch, read_header(batch), LIMIT_BYTES)) == written


def test_offset_deltas_must_count_from_zero() -> None:
    batch = build_batch([Record(offset, NOW_MS, b"k", b"v", []) for offset in (0, 2)])
    with pytest.raises(InvalidRecord, match="record 1 has offset delta 2"):
        walk(batch)


@pytest.mark.parametrize("wrong", MALFORMED)
def test_a_malformed_record_is_rejected(wrong: str) -> None:
    batch = of_bytes(bytes.fromhex(MALFORMED[wrong]))
    with pytest.raises(InvalidRecord):
        list(records(batch, read_header(batch), LIMIT_BYTES))
    with pytest.raises(InvalidRecord):
        walk(batch)


def test_a_record_count_above_the_actual_count_is_rejected() -> None:
    batch = resealed(57, b"\x7f\xff\xff\xff")
    with pytest.raises(InvalidRecord):
        list(records(batch, read_header(batch), LIMIT_BYTES))
    with pytest.raises(InvalidRecord):
        walk(batch)


def test_a_header_key_that_is_not_utf8_survives_rewriting() -> None:
    batch = build_batch([Record(0, NOW_MS, None, None, [("\udcff\udc80", b"v")])])
    again = build_batch(records(batch, read_header(batch), LIMIT_BYTES))
    assert b"\xff\x80" in batch
    assert again == batch


def test_a_control_record_of_another_kind_is_not_a_marker() -> None:
    leader_change = Record(0, NOW_MS, b"\0\0\0\2", b"\0\0\0", [])
    assert read_marker(leader_change) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\1", b"\xff\xff\0\0\0\0"),
    ],
)
def test_a_truncated_marker_is_rejected(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        read_marker(Record(0, NOW_MS, key, value, []))


def test_a_client_may_not_produce_a_marker() -> None:
    marker = build_marker(
        producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=NOW_MS
    )
    assert refusal_of(lambda: checked(marker)) == ErrorCode.INVALID_RECORD
