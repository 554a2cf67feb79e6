"""Spark's decoders in C, on numpy and record by record give the same columns for any bytes."""

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
from penstock.record.batch import HEADER, HEADER_BYTES, BatchHeader, payload_view, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record
from penstock.record.stamp import seal
from penstock.spark.decode.columns import DecodedColumns, PartitionColumns, RecordBounds
from penstock.spark.decode.decoder import NATIVE, Decoder, RecordDecoder
from penstock.spark.decode.vectorised import VectorisedDecoder, decoded_plainly
from penstock.spark.decode.visible import VisibleBatches
from penstock.spark.options import MAX_INT64
from penstock.types import Buffer
from penstock.wire.messages.fetch import AbortedTransaction
from support.records.record_bytes import damaged, noise, some_payload, some_record, untouched

CASES = 1_000_000 if "PENSTOCK_SOAK" in os.environ else 3_000
Payloads: TypeAlias = list[tuple[BatchHeader, Buffer]]
Decode: TypeAlias = Callable[[Payloads, RecordBounds, bool], list[DecodedColumns]]
EVERYTHING = RecordBounds()


def on_numpy(batches: Payloads, wanted: RecordBounds, with_headers: bool) -> list[DecodedColumns]:
    return list(VectorisedDecoder(wanted, with_headers=with_headers).decode_batches(batches))


def in_c(batches: Payloads, wanted: RecordBounds, with_headers: bool) -> list[DecodedColumns]:
    from penstock.spark.decode.native import NativeDecoder

    decoder = NativeDecoder(wanted, with_headers=with_headers)
    return [*decoder.decode_batches(batches), *decoder.rest()]


def plainly(batches: Payloads, wanted: RecordBounds, with_headers: bool) -> list[DecodedColumns]:
    return [decoded_plainly(batches, wanted, with_headers=with_headers)]


TWINS = [on_numpy, in_c] if NATIVE else [on_numpy]


def rows(decoded: Iterable[DecodedColumns]) -> list[tuple[object, ...]]:
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
    decode: Decode, batches: Payloads, wanted: RecordBounds, with_headers: bool
) -> list[tuple[object, ...]] | type:
    try:
        return rows(decode(batches, wanted, with_headers))
    except InvalidRecord as refusal:
        return type(refusal)


def agreed(
    batches: Payloads, wanted: RecordBounds = EVERYTHING, with_headers: bool = True
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
def some_batches(draw: st.DrawFn) -> tuple[Payloads, list[Record]]:
    """Batches as stored by brokers, with gaps left by compaction, and the records in them."""
    batches: Payloads = []
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
    drawn: tuple[Payloads, list[Record]], with_headers: bool
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
def test_decoders_give_the_records_within_the_bounds(
    drawn: tuple[Payloads, list[Record]], low: int, high: int, oldest: int, newest: int
) -> None:
    batches, written = drawn
    start = written[0].offset if written else 0
    wanted = RecordBounds(start + low, start + high, oldest, newest)
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
        batches: Payloads = []
        for _ in range(dice.choice([1, 1, 2])):
            data, count = some_payload(dice)
            data = dice.choice([untouched, damaged, damaged, noise])(data, dice)
            extreme = dice.choice([0, 0, 0, MAX_INT64, -MAX_INT64 - 1])
            header = header_of(count + dice.choice([0, 0, 0, 1, -1]), dice.choice([5, 5, extreme]))
            batches.append((header, data))
        wanted = dice.choice(
            [EVERYTHING, RecordBounds(6, 7), RecordBounds(oldest_ms=0, newest_ms=70_000)]
        )
        accepted += isinstance(agreed(batches, wanted, dice.random() < 0.5), list)
    # Otherwise the cases would not be worth their time.
    assert CASES // 10 < accepted < CASES * 9 // 10


REFUSED = "refused"


def fetched_by(decoder: RecordDecoder, data: bytes, wanted: RecordBounds) -> list[DecodedColumns]:
    batches = VisibleBatches(wanted, [], check_crcs=True, scratch=None)
    return [*decoder.decode(memoryview(data), batches, plain=True), *decoder.rest()]


def agreed_on_fetched(data: bytes, wanted: RecordBounds, with_headers: bool) -> object:
    """The rows, or a refusal, that all decoders agree on for a response's bytes."""
    found: list[object] = []
    decoders: list[RecordDecoder] = [VectorisedDecoder(wanted, with_headers=with_headers)]
    if NATIVE:
        from penstock.spark.decode.native import NativeDecoder

        decoders.append(NativeDecoder(wanted, with_headers=with_headers))
    for decoder in decoders:
        try:
            found.append(rows(fetched_by(decoder, data, wanted)))
        except KafkaError:
            found.append(REFUSED)  # of two errors, each decoder may meet another one first
    assert all(each == found[0] for each in found)
    return found[0]


def some_fetched(dice: random.Random) -> bytes:
    """Batches of all kinds in sequence, the last one often truncated."""
    data = bytearray()
    for _ in range(dice.randint(0, 5)):
        written = [some_record(dice, offset) for offset in range(dice.randint(1, 4))]
        data += build_batch(
            written,
            codec=dice.choice([Codec.NONE, Codec.NONE, *Codec]),
            log_append_time_ms=dice.choice([None, 77]),
            transactional=dice.random() < 0.2,
            control=dice.random() < 0.1,
            last_offset=dice.choice([None, 9]),
        )
    return bytes(data[: -dice.randint(1, 90)] if dice.random() < 0.3 else data)


def test_decoders_agree_on_fetched_batches() -> None:
    dice = random.Random("fetched")
    accepted = 0
    for _ in range(CASES):
        data = bytearray(some_fetched(dice))
        at = 0
        if dice.random() < 0.5 and len(data) > HEADER_BYTES:
            at = dice.choice([dice.randrange(HEADER_BYTES), dice.randrange(len(data))])
            data[at] ^= 1 << dice.randrange(8)
            if dice.random() < 0.5 and crc_range_ends(data):
                seal(data)
        wanted = dice.choice(
            [EVERYTHING, RecordBounds(1, 2), RecordBounds(1 << 40), RecordBounds(newest_ms=60)]
        )
        found = agreed_on_fetched(bytes(data), wanted, dice.random() < 0.5)
        accepted += isinstance(found, list)
    assert CASES // 3 < accepted < CASES


def crc_range_ends(data: bytearray) -> bool:
    """Whether the first batch still has a header that a CRC could be written for."""
    try:
        return read_header(data).size_bytes <= len(data)
    except KafkaError:
        return False


def test_both_decoders_leave_out_hidden_batches() -> None:
    """Control batches always; a producer's aborted ones where the broker names them."""
    written = [
        build_batch(
            [Record(offset, 0, None, value, [])],
            base_offset=offset,
            producer_id=offset + 1,
            transactional=True,
        )
        for offset, value in enumerate((b"kept", b"undone"))
    ]
    written += [
        build_marker(
            producer_id=producer,
            producer_epoch=0,
            committed=producer == 1,
            coordinator_epoch=0,
            timestamp=0,
            base_offset=4 - producer,
        )
        for producer in (2, 1)
    ]
    data = memoryview(b"".join(written))
    aborted = [AbortedTransaction(producer_id=2, first_offset=1)]
    for twin in (VectorisedDecoder, Decoder):
        for hidden, values in ((aborted, [b"kept"]), ([], [b"kept", b"undone"])):
            decoder = twin(EVERYTHING, with_headers=False)
            batches = VisibleBatches(EVERYTHING, hidden, check_crcs=True, scratch=None)
            decoded = [*decoder.decode(data, batches, plain=not hidden), *decoder.rest()]
            assert [row[1] for row in rows(decoded)] == values


@pytest.mark.parametrize("size", [*range(70), 1000, 65_537])
def test_the_extensions_crc_is_castagnolis(size: int) -> None:
    batch = bytearray(build_batch([Record(0, 0, None, random.Random(size).randbytes(size), [])]))
    found = agreed_on_fetched(bytes(batch), EVERYTHING, False)
    assert len(found) == 1  # type: ignore[arg-type]
    batch[-1] ^= 1
    assert agreed_on_fetched(bytes(batch), EVERYTHING, False) == REFUSED


@settings(deadline=timedelta(seconds=5), max_examples=20)
@given(st.integers(1, 3), st.integers(0, 40_000), st.integers(0, 30))
def test_chunks_end_when_they_are_full(batches: int, count: int, size: int) -> None:
    pytest.importorskip("penstock.spark.decode._fill")
    body = bytes(build_batch([Record(0, 0, b"k", bytes(size), [("h", b"v")])]))[61:]
    drawn: Payloads = [(header_of(count), body * count)] * batches
    decoded = in_c(drawn, EVERYTHING, True)
    assert sum(len(each.offset) for each in decoded) == batches * count
    # The same for a response's bytes, where a batch is interrupted and resumed in its middle.
    whole = bytearray(
        HEADER.pack(7, 49 + len(body) * count, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, count)
    )
    whole += body * count
    seal(whole)
    found = agreed_on_fetched(bytes(whole) * batches, EVERYTHING, True)
    assert len(found) == batches * count  # type: ignore[arg-type]


def test_a_record_larger_than_a_chunk_gets_its_own() -> None:
    large = Record(1, 0, b"key", b"v" * (9 << 20), [("h", bytes(5 << 20))] * 2)
    many = Record(2, 0, None, b"", [("n", None)] * 300_000)
    written = [Record(0, 0, None, b"first", []), large, many, Record(3, 0, b"", None, [])]
    batch = bytes(build_batch(written))
    header = read_header(batch)
    found = agreed([(header, payload_view(batch, header, 1 << 30))])
    assert [row[2] for row in found] == [0, 1, 2, 3]  # type: ignore[union-attr]


@pytest.mark.parametrize("time_ms", [1 << 62, -(1 << 62), 9223372036854775, -9223372036854776])
def test_times_beyond_sparks_range_become_its_last(time_ms: int) -> None:
    batch = bytes(build_batch([Record(0, time_ms, None, b"v", [])]))
    header = read_header(batch)
    ((_, _, _, micros, _, _),) = agreed([(header, payload_view(batch, header, 1000))])  # type: ignore[misc]
    assert micros == max(min(time_ms * 1000, MAX_INT64), -MAX_INT64 - 1)


def test_header_keys_that_are_not_utf8_are_shown_as_in_java() -> None:
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


def test_a_rejection_is_a_kafka_error() -> None:
    for twin in (*TWINS, plainly):
        with pytest.raises(KafkaError, match="record"):
            twin([(header_of(1), b"")], EVERYTHING, False)
