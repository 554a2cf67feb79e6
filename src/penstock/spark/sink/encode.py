"""Encodes rows of Arrow columns as records of a batch, and computes the partitions of their keys.

No row becomes a Python object: in C (`_encode.c`) a record costs about as much as its copy. Without
the extension, the functions in Python here do the same.
"""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.client.partitioner import keyed_partition
from penstock.record.varint import write_varint
from penstock.types import Buffer

_LEAST = -(1 << 63)
_BITS = 64


class ArrowColumn(NamedTuple):
    """Arrow's buffers of a binary or string column; a column of nulls may be None instead."""

    offsets: Buffer
    data: Buffer | None
    valid: Buffer | None
    """One bit per row; None without nulls."""
    first: int
    """Index in the buffers of the column's row 0."""
    width: int
    """Size of an offset: 4 or 8 bytes."""


class RecordColumns(NamedTuple):
    """The columns that become records.

    The headers of row r are the entries of `names` and `values` from offset r to r + 1 of `lists`.
    """

    key: ArrowColumn | None
    value: ArrowColumn | None
    lists: ArrowColumn | None = None
    names: ArrowColumn | None = None
    values: ArrowColumn | None = None


def append_in_python(
    out: bytearray | memoryview,
    at: int,
    limit: int,
    order: Buffer,
    start: int,
    end: int,
    timestamps: Buffer,
    base_timestamp: int,
    first_delta: int,
    rows: RecordColumns,
    /,
) -> tuple[int, int, int, int]:
    """Write the rows order[start:end] as records from out[at] on, as far as `limit` allows.

    `order` has row numbers of 32 bits, `timestamps` 64 bits for each row. Returns the first index
    of `order` that was not written, the end in `out`, the highest timestamp written (the lowest
    64-bit number for none), and the size of the next record if it did not fit, else 0.
    """
    picked, times = memoryview(order).cast("B").cast("i"), memoryview(timestamps).cast("B")
    stamps = times.cast("q")
    if not 0 <= at <= limit <= len(out) or not 0 <= start <= end <= len(picked):
        raise ValueError("rows or room out of range")
    view, newest = memoryview(out).cast("B"), _LEAST
    for index in range(start, end):
        row = picked[index]
        try:
            if row < 0:
                raise IndexError
            timestamp = stamps[row]
            record = _record(
                rows, row, _wrapped(timestamp - base_timestamp), first_delta + index - start
            )
        except IndexError:
            raise ValueError(f"a column ends before row {index}") from None
        if at + len(record) > limit:
            return index, at, newest, len(record)
        view[at : at + len(record)] = record
        at += len(record)
        newest = max(newest, timestamp)
    return end, at, newest, 0


def partitions_in_python(
    key: ArrowColumn | None, count: int, into: bytearray | memoryview, /
) -> None:
    """Fill `into`, 32 bits per row, with the partition of each row's key; -1 for null."""
    if count <= 0:
        raise ValueError("a topic has at least one partition")
    chosen = memoryview(into).cast("B").cast("i")
    for row in range(len(chosen)):
        try:
            data = field(key, row)
        except IndexError:
            raise ValueError(f"a column ends before row {row}") from None
        chosen[row] = -1 if data is None else keyed_partition(data, count)


def headers(rows: RecordColumns, row: int) -> Iterator[tuple[bytes, bytes | None]]:
    """The headers of a row; IndexError if the columns are too short."""
    if rows.lists is None or _is_null(rows.lists, row):
        return
    start, end = _range(rows.lists, row)
    for each in range(start, end):
        name = field(rows.names, each)
        if name is None:
            raise ValueError("a header's key is null")
        yield name, field(rows.values, each)


def field(column: ArrowColumn | None, row: int) -> bytes | None:
    """One field; IndexError if the column is too short."""
    if column is None or _is_null(column, row):
        return None
    start, end = _range(column, row)
    if column.data is None:
        if end > start:
            raise IndexError
        return b""
    if not 0 <= start <= end <= len(memoryview(column.data)):
        raise IndexError
    return bytes(memoryview(column.data)[start:end])


def _record(rows: RecordColumns, row: int, timestamp_delta: int, offset_delta: int) -> bytearray:
    body = bytearray(1)  # attributes: unused
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write(body, field(rows.key, row))
    _write(body, field(rows.value, row))
    found = list(headers(rows, row))
    write_varint(body, len(found))
    for name, value in found:
        _write(body, name)
        _write(body, value)
    record = bytearray()
    write_varint(record, len(body))
    return record + body


def _write(out: bytearray, data: bytes | None) -> None:
    write_varint(out, -1 if data is None else len(data))
    out += data or b""


def _wrapped(delta: int) -> int:
    """The delta modulo 2**64: adding it to the base gives the timestamp again."""
    return (delta + (1 << _BITS - 1)) % (1 << _BITS) - (1 << _BITS - 1)


def _is_null(column: ArrowColumn, row: int) -> bool:
    if column.valid is None:
        return False
    index = column.first + row
    return not memoryview(column.valid)[index >> 3] >> (index & 7) & 1


def _range(column: ArrowColumn, row: int) -> tuple[int, int]:
    at = (column.first + row) * column.width
    raw = bytes(memoryview(column.offsets)[at : at + 2 * column.width])
    if len(raw) < 2 * column.width:
        raise IndexError
    start = int.from_bytes(raw[: column.width], "little", signed=True)
    return start, int.from_bytes(raw[column.width :], "little", signed=True)


try:
    from penstock.spark.sink import _encode
except ImportError:
    NATIVE, append, partitions = False, append_in_python, partitions_in_python
else:
    NATIVE, append, partitions = True, _encode.append, _encode.partitions
