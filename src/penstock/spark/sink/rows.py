"""An Arrow batch of rows as buffers and numbers, from which records are encoded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import KafkaError
from penstock.spark.sink.columns import SinkColumns
from penstock.spark.sink.encode import ArrowColumn, RecordColumns

_WIDE: Final = (pa.types.is_large_binary, pa.types.is_large_string)


class BadRow(KafkaError):
    """A row that cannot be a record."""


@dataclass(frozen=True, slots=True)
class SinkRows:
    """The rows of one Arrow batch."""

    count: int
    rows: RecordColumns
    timestamps: npt.NDArray[np.int64]
    is_stamped: npt.NDArray[np.bool_] | None
    """Which rows have their timestamp from the column; None: the sink sets all."""
    partitions: npt.NDArray[np.int32] | None
    """The column partition, -1 for null; None without that column."""
    topics: Sequence[tuple[str, npt.NDArray[np.int32]]] | None
    """Topics and their rows; None if option topic names one for all."""


def sink_rows(batch: pa.RecordBatch, columns: SinkColumns, now_ms: int) -> SinkRows:
    headers = None if columns.headers is None else batch.column(columns.headers)
    lists, names, values = _headers(headers)
    return SinkRows(
        batch.num_rows,
        RecordColumns(
            None if columns.key is None else binary_column(batch.column(columns.key)),
            binary_column(batch.column(columns.value)),
            lists,
            names,
            values,
        ),
        _timestamps(batch, columns.timestamp, now_ms),
        None if columns.timestamp is None else _is_stamped(batch.column(columns.timestamp)),
        _partitions(batch, columns.partition),
        None if columns.topic is None else list(_topics(batch.column(columns.topic))),
    )


def binary_column(array: pa.Array) -> ArrowColumn | None:
    """The buffers of a column of bytes or text."""
    if pa.types.is_null(array.type):
        return None
    valid, offsets, data = array.buffers()
    width = 8 if any(test(array.type) for test in _WIDE) else 4
    if offsets is None:  # Arrow allows that for no rows
        offsets = pa.py_buffer(bytes(width))
    return ArrowColumn(offsets, data, valid if array.null_count else None, array.offset, width)


def _headers(
    array: pa.Array | None,
) -> tuple[ArrowColumn | None, ArrowColumn | None, ArrowColumn | None]:
    if array is None:
        return None, None, None
    valid, offsets = array.buffers()[:2]
    entries = array.values
    if entries.null_count:
        raise BadRow("column headers has an element that is null")
    lists = ArrowColumn(
        offsets if offsets is not None else pa.py_buffer(bytes(8)),
        None,
        valid if array.null_count else None,
        array.offset,
        8 if pa.types.is_large_list(array.type) else 4,
    )
    return lists, binary_column(entries.field(0)), binary_column(entries.field(1))


def _timestamps(batch: pa.RecordBatch, position: int | None, now_ms: int) -> npt.NDArray[np.int64]:
    if position is None:
        return np.full(batch.num_rows, now_ms, np.int64)
    column = batch.column(position)
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    # Floored, as Spark does for times before 1970.
    return np.asarray(
        np.floor_divide(pc.fill_null(micros, now_ms * 1000).to_numpy(zero_copy_only=False), 1000),
        np.int64,
    )


def _is_stamped(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _partitions(batch: pa.RecordBatch, position: int | None) -> npt.NDArray[np.int32] | None:
    if position is None:
        return None
    column = batch.column(position)
    requested = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
    negative = np.flatnonzero(requested < 0)
    if len(negative) > column.null_count:
        negative_partition = next(
            int(requested[row]) for row in negative if column[int(row)].is_valid
        )
        raise BadRow(f"column partition has {negative_partition}; partitions count from 0")
    return np.asarray(requested, np.int32)


def _topics(column: pa.Array) -> Iterator[tuple[str, npt.NDArray[np.int32]]]:
    if column.null_count:
        raise BadRow("column topic has a null, and option topic is not set")
    encoded = column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
    yield from zip(encoded.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True)
