"""The batch header: reading it, and changing it in place."""

import pytest

from penstock.record.batch import (
    HEADER_BYTES,
    CorruptBatch,
    assign,
    batches,
    crc_matches,
    read_header,
)
from penstock.record.build import build_batch, emptied, numbered
from penstock.record.compression import Codec, UnknownCodec
from penstock.record.record import Record, records
from penstock.record.stamp import stamp_log_append_time, stamp_max_timestamp


def batch_of(count: int, **fields: int) -> bytearray:
    pairs = [(b"k%d" % i, b"v%d" % i) for i in range(count)]
    return build_batch(numbered(pairs, 1000, fields.get("base_offset", 0)), **fields)  # type: ignore[arg-type]  # only integers are passed


def test_a_header_is_read_without_its_records() -> None:
    batch = batch_of(3)
    assert read_header(bytes(batch[:HEADER_BYTES])) == read_header(batch)


@pytest.mark.parametrize("size", [0, 1, 60])
def test_a_short_header_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch, match="too few"):
        read_header(batch_of(1)[:size])


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_a_magic_other_than_2_is_corrupt(magic: int) -> None:
    batch = batch_of(1)
    batch[16] = magic
    with pytest.raises(CorruptBatch, match="magic"):
        read_header(batch)


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_below_the_header_is_corrupt(length: int) -> None:
    batch = batch_of(1)
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="length"):
        read_header(batch)


def test_a_header_is_read_from_the_middle_of_a_buffer() -> None:
    first, second = batch_of(2), batch_of(3, base_offset=2)
    joined = memoryview(first + second)
    header = read_header(joined, len(first))
    assert (header.base_offset, header.last_offset, header.next_offset) == (2, 4, 5)
    assert crc_matches(joined, header, len(first))


def test_a_truncated_last_batch_is_skipped_without_an_error() -> None:
    first, second = batch_of(2), batch_of(3, base_offset=2)
    whole = first + second
    for end in range(len(whole) + 1):
        found = [(at, header.base_offset) for at, header in batches(whole[:end])]
        expected = [(0, 0), (len(first), 2)]
        assert found == expected[: (end >= len(first)) + (end >= len(whole))]


def test_a_truncated_batch_does_not_match_its_crc() -> None:
    batch = batch_of(2)
    header = read_header(batch)
    assert not crc_matches(batch[:-1], header)


def test_assigning_offset_and_epoch_keeps_the_crc_valid() -> None:
    joined = batch_of(1) + batch_of(2)
    at = len(batch_of(1))
    assign(memoryview(joined), 1 << 40, 7, at)
    header = read_header(joined, at)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 7)
    assert crc_matches(joined, header, at)
    assert joined[:at] == batch_of(1)


def test_log_append_time_becomes_the_timestamp_of_every_record() -> None:
    batch = batch_of(3)
    stamp_log_append_time(batch, 5000)
    header = read_header(batch)
    assert header.is_log_append_time
    assert crc_matches(batch, header)
    assert {record.timestamp for record in records(batch, header, 1 << 20)} == {5000}


def test_correcting_the_max_timestamp_sets_create_time() -> None:
    joined = batch_of(1) + batch_of(3)
    at = len(batch_of(1))
    stamp_log_append_time(joined, 5000, at)
    stamp_max_timestamp(memoryview(joined), 1000, at)
    assert joined == batch_of(1) + batch_of(3)


def test_sequences_wrap_after_the_largest_integer() -> None:
    header = read_header(batch_of(3, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2))
    assert header.last_sequence == 0


def test_a_batch_without_a_producer_has_no_last_sequence() -> None:
    assert read_header(batch_of(3)).last_sequence == -1


def test_an_unknown_codec_number_is_rejected() -> None:
    batch = batch_of(1)
    batch[22] = 5
    with pytest.raises(UnknownCodec):
        _ = read_header(batch).codec


def test_a_batch_keeps_its_offset_range_without_its_last_records() -> None:
    kept = [Record(12, 1000, b"k", b"v", [])]
    header = read_header(build_batch(kept, base_offset=10, last_offset=14))
    assert (header.last_offset, header.record_count) == (14, 1)


def test_building_a_batch_without_records_is_an_error() -> None:
    with pytest.raises(ValueError, match="emptied"):
        build_batch([])


@pytest.mark.parametrize("codec", Codec)
def test_an_emptied_batch_keeps_offsets_and_producer(codec: Codec) -> None:
    full = build_batch(
        numbered([(b"k", b"v")] * 3, 1000),
        codec=codec,
        producer_id=8,
        producer_epoch=1,
        base_sequence=40,
    )
    before = read_header(full)
    batch = emptied(before)
    after = read_header(batch)
    assert crc_matches(batch, after)
    assert list(records(batch, after, 1 << 20)) == []
    assert (after.last_offset, after.producer_id, after.last_sequence) == (
        before.last_offset,
        before.producer_id,
        before.last_sequence,
    )
