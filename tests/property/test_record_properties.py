"""Any records survive a batch; any damage is a refusal and never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.record_target import fuzz_record
from penstock.errors import KafkaError
from penstock.record.batch import assign, crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records
from penstock.record.stamp import stamp_log_append_time
from penstock.record.validate import check_records
from penstock.record.varint import read_varint, read_varlong, write_varint

LIMIT_BYTES = 1 << 20
maybe_bytes = st.none() | st.binary(max_size=300)
timestamps = st.integers(-1, (1 << 60) - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
headers = st.lists(st.tuples(text, maybe_bytes), max_size=4)
contents = st.tuples(timestamps, maybe_bytes, maybe_bytes, headers)
codecs = st.sampled_from(Codec)
offsets = st.integers(0, 1 << 62)
varints = st.integers(-(1 << 31), (1 << 31) - 1)
varlongs = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    drawn = draw(st.lists(contents, min_size=1, max_size=20))
    return [Record(offset, *content) for offset, content in enumerate(drawn)]


@given(some_records(), codecs)
def test_records_survive_a_round_trip_through_a_batch(written: list[Record], codec: Codec) -> None:
    batch = build_batch(written, codec=codec)
    header = read_header(batch)
    assert crc_matches(batch, header)
    assert header.size_bytes == len(batch)
    assert header.max_timestamp == max(record.timestamp for record in written)
    assert list(records(batch, header, LIMIT_BYTES)) == written
    check_records(batch, header, keys_required=False, limit_bytes=LIMIT_BYTES)


@given(some_records(), offsets, st.integers(0, 1 << 30), timestamps)
def test_a_broker_changes_a_batch_in_place(
    written: list[Record], base_offset: int, leader_epoch: int, now_ms: int
) -> None:
    batch = build_batch(written)
    assign(batch, base_offset, leader_epoch)
    assert crc_matches(batch, read_header(batch))
    stamp_log_append_time(batch, now_ms)
    header = read_header(batch)
    assert crc_matches(batch, header)
    assert list(records(batch, header, LIMIT_BYTES)) == [
        Record(base_offset + record.offset, now_ms, record.key, record.value, record.headers)
        for record in written
    ]


@given(some_records(), codecs, st.data())
def test_a_flipped_bit_after_the_crc_is_detected(
    written: list[Record], codec: Codec, data: st.DataObject
) -> None:
    batch = build_batch(written, codec=codec)
    bit = data.draw(st.integers(17 * 8, len(batch) * 8 - 1))
    batch[bit // 8] ^= 1 << bit % 8
    assert not crc_matches(batch, read_header(batch))


@given(some_records(), codecs, st.data())
def test_corruption_with_a_valid_crc_gives_records_or_a_kafka_error(
    written: list[Record], codec: Codec, data: st.DataObject
) -> None:
    batch = build_batch(written, codec=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    fuzz_record(bytes(batch))


@given(some_records(), st.data())
def test_the_walk_and_the_reader_reject_the_same_batches(
    written: list[Record], data: st.DataObject
) -> None:
    batch = build_batch(written)
    at = data.draw(st.integers(61, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))
    header = read_header(batch)
    try:
        read = list(records(batch, header, LIMIT_BYTES))
    except InvalidRecord:
        with pytest.raises(InvalidRecord):
            check_records(batch, header, keys_required=False, limit_bytes=LIMIT_BYTES)
        return
    in_order = [record.offset for record in read] == list(range(len(read)))
    try:
        check_records(batch, header, keys_required=False, limit_bytes=LIMIT_BYTES)
    except InvalidRecord:
        assert not in_order
    else:
        assert in_order


@given(st.binary(max_size=300))
def test_any_bytes_raise_nothing_but_a_kafka_error(data: bytes) -> None:
    fuzz_record(data)


@given(varints)
def test_a_varint_survives_a_round_trip(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert len(out) <= 5
    assert read_varint(bytes(out), 0) == (value, len(out))


@given(varlongs)
def test_a_varlong_survives_a_round_trip(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert len(out) <= 10
    assert read_varlong(bytes(out), 0) == (value, len(out))


@given(st.binary(max_size=12))
def test_any_bytes_are_a_varint_or_an_error(data: bytes) -> None:
    try:
        value, at = read_varint(data, 0)
    except (KafkaError, IndexError):
        return
    assert -(1 << 31) <= value < 1 << 31
    assert 1 <= at <= min(5, len(data))
