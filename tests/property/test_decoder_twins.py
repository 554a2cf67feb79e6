"""Spark's decoders: in C, on numpy and record by record, the same columns for any bytes."""

import os
import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import KafkaError
from penstock.record.batch import HEADER, BatchHeader, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, payload_view
from penstock.spark.decode.columns import MAX_INT64, Decoded, PartitionColumns, Wanted
from penstock.spark.decode.decoder import NATIVE
from penstock.spark.decode.vectorised import VectorisedDecoder, decoded_plainly
from penstock.types import Buffer
from record_bytes import damaged, noise, some_payload, untouched

CASES = 1_000_000 if "PENSTOCK_SOAK" in os.environ else 3_000
Batches: TypeAlias = list[tuple[BatchHeader, Buffer]]
Decode: TypeAlias = Callable[[Batches, Wanted, bool], list[Decoded]]
EVERYTHING = Wanted()


def on_numpy(batches: Batches, wanted: Wanted, with_headers: bool) -> list[Decoded]:
    return list(VectorisedDecoder(wanted, with_headers=with_headers).decode(batches))


def in_c(batches: Batches, wanted: Wanted, with_headers: bool) -> list[Decoded]:
    from penstock.spark.decode.native import NativeDecoder

    decoder = NativeDecoder(wanted, with_headers=with_headers)
    return [*decoder.decode(batches), *decoder.rest()]


def plainly(batches: Batches, wanted: Wanted, with_headers: bool) -> list[Decoded]:
    return [decoded_plainly(batches, wanted, with_headers=with_headers)]


TWINS = [on_numpy, in_c] if NATIVE else [on_numpy]


def rows(decoded: Iterable[Decoded]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for each in decoded:
        for column in each:
            if column is not None:
                column.validate(full=True)
        micros = each.timestamp.cast(pa.int64())
        columns = [each.key, each.value, each.offset, micros, each.timestamp_type]
        columns += [] if each.headers is None else [each.headers]
        found += zip(*(column.to_pylist() for column in columns), strict=True)
    return found


def outcome(
    decode: Decode, batches: Batches, wanted: Wanted, with_headers: bool
) -> list[tuple[object, ...]] | type:
    try:
        return rows(decode(batches, wanted, with_headers))
    except InvalidRecord as refusal:
        return type(refusal)


def agreed(
    batches: Batches, wanted: Wanted = EVERYTHING, with_headers: bool = True
) -> list[tuple[object, ...]] | type:
    expected = outcome(plainly, batches, wanted, with_headers)
    for twin in TWINS:
        assert outcome(twin, batches, wanted, with_headers) == expected, twin
    return expected


maybe_bytes = st.none() | st.binary(max_size=200)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
header_lists = st.lists(st.tuples(text, maybe_bytes), max_size=3)
times = st.integers(-1, (1 << 62) - 1)
contents = st.tuples(times, maybe_bytes, maybe_bytes, header_lists)


@st.composite
def some_batches(draw: st.DrawFn) -> tuple[Batches, list[Record]]:
    """Batches as brokers keep them, with gaps where compaction was; and the records in them."""
    batches: Batches = []
    written: list[Record] = []
    offset = draw(st.integers(0, 1 << 40))
    for drawn in draw(st.lists(st.lists(contents, min_size=1, max_size=8), max_size=4)):
        offset += draw(st.integers(0, 3))
        stamped = draw(st.none() | times)
        records = []
        base = offset
        for content in drawn:
            records.append(Record(offset, *content))
            offset += draw(st.integers(1, 3))
        batch = bytes(
            build_batch(
                records,
                codec=draw(st.sampled_from(Codec)),
                base_offset=base,
                log_append_time_ms=stamped,
            )
        )
        header = read_header(batch)
        batches.append((header, payload_view(batch, header, 1 << 24)))
        for record in records:
            record.timestamp = record.timestamp if stamped is None else stamped
        written += records
    return batches, written


@given(some_batches(), st.booleans())
def test_decoders_give_what_was_written(
    drawn: tuple[Batches, list[Record]], with_headers: bool
) -> None:
    batches, written = drawn
    found = agreed(batches, with_headers=with_headers)
    assert isinstance(found, list)
    assert [(row[0], row[1], row[2]) for row in found] == [
        (record.key, record.value, record.offset) for record in written
    ]
    if with_headers:
        headers = [
            None if row[5] is None else [(each["key"], each["value"]) for each in row[5]]  # type: ignore[attr-defined]
            for row in found
        ]
        assert headers == [record.headers or None for record in written]


@given(some_batches(), st.integers(-2, 20), st.integers(-2, 20), times, times)
def test_decoders_give_what_is_wanted(
    drawn: tuple[Batches, list[Record]], low: int, high: int, oldest: int, newest: int
) -> None:
    batches, written = drawn
    start = written[0].offset if written else 0
    wanted = Wanted(start + low, start + high, oldest, newest)
    found = agreed(batches, wanted)
    assert isinstance(found, list)
    assert [row[2] for row in found] == [
        record.offset
        for record in written
        if wanted.first <= record.offset < wanted.end and oldest <= record.timestamp <= newest
    ]


def header_of(count: int, base_offset: int = 7, base_timestamp: int = 11) -> BatchHeader:
    return BatchHeader(
        *HEADER.unpack(
            HEADER.pack(base_offset, 49, 0, 2, 0, 0, 0, base_timestamp, 0, -1, -1, -1, count)
        )
    )


@given(st.binary(max_size=60), st.integers(-1, 4) | st.just(2**31 - 1), st.booleans())
def test_decoders_agree_on_any_bytes(data: bytes, count: int, with_headers: bool) -> None:
    agreed([(header_of(count), data)], with_headers=with_headers)


def test_decoders_agree_on_damaged_records_and_noise() -> None:
    dice = random.Random("decoders")
    accepted = 0
    for _ in range(CASES):
        batches: Batches = []
        for _ in range(dice.choice([1, 1, 2])):
            data, count = some_payload(dice)
            data = dice.choice([untouched, damaged, damaged, noise])(data, dice)
            extreme = dice.choice([0, 0, 0, MAX_INT64, -MAX_INT64 - 1])
            header = header_of(count + dice.choice([0, 0, 0, 1, -1]), dice.choice([5, 5, extreme]))
            batches.append((header, data))
        wanted = dice.choice([EVERYTHING, Wanted(6, 7), Wanted(oldest_ms=0, newest_ms=70_000)])
        accepted += isinstance(agreed(batches, wanted, dice.random() < 0.5), list)
    # Else the cases would not be worth their time.
    assert CASES // 10 < accepted < CASES * 9 // 10


@settings(deadline=timedelta(seconds=5), max_examples=20)
@given(st.integers(1, 3), st.integers(0, 40_000), st.integers(0, 30))
def test_chunks_are_cut_where_they_are_full(batches: int, count: int, size: int) -> None:
    pytest.importorskip("penstock.spark.decode._fill")
    body = bytes(build_batch([Record(0, 0, b"k", bytes(size), [("h", b"v")])]))[61:]
    drawn: Batches = [(header_of(count), body * count)] * batches
    decoded = in_c(drawn, EVERYTHING, True)
    assert sum(len(each.offset) for each in decoded) == batches * count


def test_a_record_that_fits_no_chunk_gets_its_own() -> None:
    large = Record(1, 0, b"key", b"v" * (9 << 20), [("h", bytes(5 << 20))] * 2)
    many = Record(2, 0, None, b"", [("n", None)] * 300_000)
    written = [Record(0, 0, None, b"first", []), large, many, Record(3, 0, b"", None, [])]
    batch = bytes(build_batch(written))
    header = read_header(batch)
    found = agreed([(header, payload_view(batch, header, 1 << 30))])
    assert [row[2] for row in found] == [0, 1, 2, 3]  # type: ignore[union-attr]


@pytest.mark.parametrize("time_ms", [1 << 62, -(1 << 62), 9223372036854775, -9223372036854776])
def test_times_that_spark_cannot_hold_become_its_last(time_ms: int) -> None:
    batch = bytes(build_batch([Record(0, time_ms, None, b"v", [])]))
    header = read_header(batch)
    ((_, _, _, micros, _, _),) = agreed([(header, payload_view(batch, header, 1000))])  # type: ignore[misc]
    assert micros == max(min(time_ms * 1000, MAX_INT64), -MAX_INT64 - 1)


def test_header_keys_that_are_no_text_are_shown_as_java_does() -> None:
    name = b"\xff\xc3\xa9\xe2\x82".decode("utf-8", "surrogateescape")
    batch = bytes(build_batch([Record(0, 0, None, b"v", [(name, b"1"), ("plain", None)])]))
    header = read_header(batch)
    ((*_, headers),) = agreed([(header, payload_view(batch, header, 1000))])  # type: ignore[misc]
    assert headers == [{"key": "\ufffdé\ufffd", "value": b"1"}, {"key": "plain", "value": None}]


def test_columns_have_the_kafka_formats_names_and_types() -> None:
    batch = bytes(build_batch([Record(0, 5, b"k", b"v", [("h", b"x")])], log_append_time_ms=1_500))
    header = read_header(batch)
    for twin in TWINS:
        (decoded,) = twin([(header, payload_view(batch, header, 1000))], EVERYTHING, True)
        found = PartitionColumns("t", 3, with_headers=True).completed(decoded)
        assert found.schema.names == [
            "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
        ]  # fmt: skip
        row = found.to_pylist()[0]
        assert (row["topic"], row["partition"], row["timestampType"]) == ("t", 3, 1)
        assert row["timestamp"].timestamp() == 1.5


def test_mistaken_arguments_of_the_extension_are_errors() -> None:
    fill = pytest.importorskip("penstock.spark.decode._fill").fill
    wanted, batch = (0, 9, 0, 9), (0, 0, False)
    small = tuple(bytearray(8) for _ in range(17))
    for arguments, error in [
        ((), TypeError),
        ((b"", 0, 1, batch, wanted, True, (1, 1), ()), ValueError),
        ((b"", 1, 1, batch, wanted, True, (1, 1), small), ValueError),
        ((b"", -1, 1, batch, wanted, True, (1, 1), small), ValueError),
        ((b"", 0, 1, batch, wanted, True, (100, 1), small), ValueError),
        ((b"", 0, 1, batch, wanted, True, (-1, 1), small), ValueError),
        ((b"", 0, 1, batch, wanted, True, (1, 1), (b"",) * 17), BufferError),
        (("", 0, 1, batch, wanted, True, (1, 1), small), TypeError),
    ]:
        with pytest.raises(error):
            fill(*arguments)


def test_a_refusal_is_a_kafka_error() -> None:
    for twin in (*TWINS, plainly):
        with pytest.raises(KafkaError, match="record"):
            twin([(header_of(1), b"")], EVERYTHING, False)
