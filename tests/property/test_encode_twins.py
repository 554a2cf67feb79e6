"""Rows become the same records in C and in Python, and the record reader reads them back."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.partitioner import keyed_partition
from penstock.record.batch import read_header
from penstock.record.compression import Codec
from penstock.record.record import records
from penstock.spark.sink import encode
from penstock.spark.sink.accumulator import ProducerIdentity, RecordAccumulator
from penstock.spark.sink.columns import sink_columns
from penstock.spark.sink.encode import ArrowColumn, RecordColumns
from penstock.spark.sink.rows import sink_rows
from penstock.types import TopicPartition

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
PLACE = TopicPartition("rows", 3)

some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=5), "value": some_bytes}), max_size=3
)
some_rows = st.lists(
    st.fixed_dictionaries({"key": some_bytes, "value": some_bytes, "headers": some_headers}),
    min_size=1,
    max_size=30,
)
some_times = st.integers(-(1 << 62), 1 << 62)


def arrow(rows: list[dict[str, object]], *, large: bool, sliced: int) -> pa.RecordBatch:
    binary = pa.large_binary() if large else pa.binary()
    schema = pa.schema([("key", binary), ("value", binary), ("headers", HEADERS)])
    return pa.RecordBatch.from_pylist(rows, schema=schema).slice(sliced)


@given(some_rows, st.booleans(), st.integers(0, 3), st.data())
def test_both_twins_write_what_the_reader_reads(
    rows: list[dict[str, object]], large: bool, sliced: int, data: st.DataObject
) -> None:
    batch = arrow(rows, large=large, sliced=sliced)
    rows = rows[sliced:]
    times = data.draw(st.lists(some_times, min_size=len(rows), max_size=len(rows)))
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.int32)
    seen = sink_rows(batch, sink_columns(TYPES, topic="rows"), 0)
    stamps = np.array(times, np.int64)
    limit = data.draw(st.integers(1, 2000))
    batches = []
    for append in (encode.append_in_python, encode.append):
        outcome = []
        out, start = bytearray(limit), 0
        while start < len(order):
            base = int(stamps[order[start]])
            done = append(
                out, 0, limit, order.data, start, len(order), stamps.data, base, 0, seen.rows
            )
            outcome.append((done, bytes(out[: done[1]])))
            if done[0] == start:
                assert done[3] > limit, "a record is left out only if it finds no room"
                break
            start = done[0]
        batches.append(outcome)
    assert batches[0] == batches[1]

    accumulator = RecordAccumulator(
        ProducerIdentity(7, 1), Codec.NONE, None, lambda: limit, 1 << 20
    )
    sealed = [*accumulator.add(PLACE, seen.rows, order, stamps), *accumulator.flush()]
    assert [each.base_sequence for each in sealed] == [
        sum(each.count for each in sealed[:index]) for index in range(len(sealed))
    ]
    found = [
        record
        for each in sealed
        for record in records(each.data, read_header(each.data), limit_bytes=1 << 20)
    ]
    expected = [
        (
            times[row],
            rows[row]["key"],
            rows[row]["value"],
            [(each["key"], each["value"]) for each in rows[row]["headers"] or []],
        )
        for row in order
    ]
    assert [(each.timestamp, each.key, each.value, each.headers) for each in found] == expected


@given(st.lists(some_bytes, min_size=1), st.integers(1, 100))
def test_keys_go_where_the_java_client_sends_them(keys: list[bytes | None], count: int) -> None:
    batch = pa.record_batch({"value": pa.array(keys, pa.binary())})
    column = sink_rows(batch, sink_columns({"value": "binary"}, topic="rows"), 0).rows.value
    for partitions in (encode.partitions_in_python, encode.partitions):
        chosen = np.empty(len(keys), np.int32)
        partitions(column, count, chosen.data)
        assert list(chosen) == [-1 if key is None else keyed_partition(key, count) for key in keys]


@given(st.binary(max_size=80), st.binary(max_size=40), st.integers(0, 20), st.booleans())
def test_both_twins_reject_a_column_with_a_wrong_size(
    offsets: bytes, data: bytes, first: int, wide: bool
) -> None:
    column = ArrowColumn(offsets, data, None, first, 8 if wide else 4)
    order, stamps = np.arange(4, dtype=np.int32), np.zeros(4, np.int64)

    def outcome(append: Callable[..., tuple[int, int, int, int]]) -> object:
        out = bytearray(4096)
        try:
            done = append(
                out, 0, 4096, order.data, 0, 4, stamps.data, 0, 0, RecordColumns(None, column)
            )
        except ValueError as error:
            return str(error)
        return done, bytes(out)

    assert outcome(encode.append_in_python) == outcome(encode.append)


def test_a_header_without_name_is_an_error() -> None:
    headers: list[object] = [[{"key": None, "value": b"x"}]]
    batch = arrow([{"key": b"", "value": b"", "headers": headers[0]}], large=False, sliced=0)
    seen = sink_rows(batch, sink_columns(TYPES, topic="rows"), 0)
    for append in (encode.append_in_python, encode.append):
        with pytest.raises(ValueError, match="header's key is null"):
            append(bytearray(100), 0, 100, bytes(4), 0, 1, bytes(8), 0, 0, seen.rows)
