"""The decoder on numpy, used without the C extension: gives the same columns.

Only the walk from record to record is a loop in Python; each field is then read in all records at
once. Suspicious bytes are read again by the plain reader, which decides.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.record.batch import BatchHeader, declared_count
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records_of_payload
from penstock.spark.decode.columns import (
    HEADER,
    HEADERS,
    MAX_MS,
    TIMESTAMP,
    DecodedColumns,
    RecordBounds,
    readable_names,
)
from penstock.spark.decode.visible import VisibleBatches
from penstock.spark.options import MAX_INT64, MIN_INT64
from penstock.types import Buffer

GROUP_BYTES: Final = 16 << 20
"""Payloads are decoded together up to this size: numpy is only fast on many records."""
_SPARE: Final = bytes(16)
"""Padding after the last payload, so that a number at its end can be read."""
_VARINT_BYTES: Final = 5
_VARLONG_BYTES: Final = 10
_LAST_BYTES: Final = {_VARINT_BYTES: 1 << (32 - 4 * 7), _VARLONG_BYTES: 1 << (64 - 9 * 7)}
"""The last byte of a varint is below this, else the number exceeds 32 or 64 bits."""
_MOST_HEADERS: Final = 100
"""Records with more headers are faster one by one: each n-th header costs a vector pass."""

Batch: TypeAlias = tuple[BatchHeader, Buffer]
Ints: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


class VectorisedDecoder:
    """Decodes at once; holds nothing back."""

    def __init__(self, wanted: RecordBounds, *, with_headers: bool) -> None:
        self.wanted, self._with_headers = wanted, with_headers

    def decode(
        self,
        fetched: memoryview,
        batches: VisibleBatches,
        *,
        plain: bool,  # noqa: ARG002 - only its twin uses it
    ) -> Iterator[DecodedColumns]:
        """Records of fetched bytes, in the batches that `batches` lets through."""
        return self.decode_batches(batches(fetched))

    def decode_batches(self, batches: Iterable[Batch]) -> Iterator[DecodedColumns]:
        for group in _groups(batches):
            decoded = self._decoded(group)
            if len(decoded.offset):
                yield decoded

    def rest(self) -> Iterator[DecodedColumns]:
        """Nothing: all records were returned at once."""
        return iter(())

    def _decoded(self, group: list[Batch]) -> DecodedColumns:
        raw = b"".join([*(payload for _, payload in group), _SPARE])
        try:
            found = _fields(raw, group, with_headers=self._with_headers)
        except _SuspiciousError:
            return decoded_plainly(group, self.wanted, with_headers=self._with_headers)
        first, end, oldest, newest = self.wanted
        matches = (found.offset >= first) & (found.offset < end)
        matches &= (found.time_ms >= oldest) & (found.time_ms <= newest)
        rows = np.flatnonzero(matches)
        size, binary = len(rows), pa.py_buffer(raw)
        edges = np.empty((size, 4), np.int32)
        for index, field_range in enumerate((found.key, found.value)):
            edges[:, 2 * index] = field_range.start[rows]
            edges[:, 2 * index + 1] = field_range.end[rows]
        columns = _between(binary, edges.reshape(-1))
        key, value = (
            columns.take(pa.array(np.arange(at, 4 * size, 4), mask=field_range.null[rows]))
            for at, field_range in ((0, found.key), (2, found.value))
        )
        headers = None
        if self._with_headers:
            headers = _headers_column(binary, found.headers, rows, len(found.offset))
        return DecodedColumns(
            key,
            value,
            pa.array(found.offset[rows]),
            pa.array(as_micros(found.time_ms[rows])).cast(TIMESTAMP),
            pa.array(found.append_time[rows].astype(np.int32)),
            headers,
        )


class _SuspiciousError(Exception):
    """Bytes that no producer writes; the plain reader decides whether they are wrong."""


class _FieldRange(NamedTuple):
    """The byte range of a field in each record."""

    start: Ints
    end: Ints
    null: np.ndarray


class _Headers(NamedTuple):
    """All headers in order: their records, and the byte ranges of their keys and values."""

    record: Ints
    name: _FieldRange
    content: _FieldRange


class _Fields(NamedTuple):
    offset: Ints
    time_ms: Ints
    append_time: np.ndarray
    key: _FieldRange
    value: _FieldRange
    headers: _Headers


def as_micros(time_ms: Ints) -> Ints:
    """Spark's microseconds; times beyond its range become its last or first timestamp."""
    micros = np.where(np.abs(time_ms) > MAX_MS, 0, time_ms) * 1000
    micros[time_ms > MAX_MS] = MAX_INT64
    micros[time_ms < -MAX_MS] = MIN_INT64
    return micros


def decoded_plainly(
    group: Iterable[Batch], wanted: RecordBounds, *, with_headers: bool
) -> DecodedColumns:
    """The same columns, decoded record by record: decides about suspicious bytes."""
    first, end, oldest, newest = wanted
    found, kinds = [], []
    for header, payload in group:
        for record in _with_batch(header, records_of_payload(bytes(payload), header)):
            if not MIN_INT64 <= record.offset <= MAX_INT64:
                raise InvalidRecord(f"batch at offset {header.base_offset}: passes 64 bits")
            record.timestamp = max(min(record.timestamp, MAX_INT64), MIN_INT64)
            if first <= record.offset < end and oldest <= record.timestamp <= newest:
                found.append(record)
                kinds.append(int(header.is_log_append_time))
    times = np.array([record.timestamp for record in found], np.int64)
    headers = None
    if with_headers:
        texts = [
            [(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), content)
             for name, content in record.headers] or None
            for record in found
        ]  # fmt: skip
        headers = pa.array(texts, HEADERS)
    return DecodedColumns(
        pa.array([record.key for record in found], pa.binary()),
        pa.array([record.value for record in found], pa.binary()),
        pa.array([record.offset for record in found], pa.int64()),
        pa.array(as_micros(times)).cast(TIMESTAMP),
        pa.array(kinds, pa.int32()),
        headers,
    )


def _with_batch(header: BatchHeader, found: Iterator[Record]) -> Iterator[Record]:
    """The same records; an error also names the batch."""
    try:
        yield from found
    except InvalidRecord as error:
        raise InvalidRecord(f"batch at offset {header.base_offset}: {error}") from None


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    group: list[Batch] = []
    size = 0
    for header, payload in batches:
        group.append((header, payload))
        size += len(payload)
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _fields(raw: bytes, group: list[Batch], *, with_headers: bool) -> _Fields:
    data = np.frombuffer(raw, np.uint8)
    starts, sizes = _record_starts(raw, group)
    counts = [header.record_count for header, _ in group]
    append_time = np.array([header.is_log_append_time for header, _ in group], bool)
    base_offset = np.array([header.base_offset for header, _ in group], np.int64)
    base_time = np.array(
        [
            header.max_timestamp if header.is_log_append_time else header.base_timestamp
            for header, _ in group
        ],
        np.int64,
    )
    append_time, base_offset, base_time = (
        np.repeat(each, counts) for each in (append_time, base_offset, base_time)
    )
    # One unused byte of attributes precedes the deltas.
    time_delta, at = _numbers(data, starts + 1, _VARLONG_BYTES)
    offset_delta, at = _numbers(data, at, _VARINT_BYTES)
    key, at = _field_ranges(data, at)
    value, at = _field_ranges(data, at)
    headers, at = _headers(data, at, wanted=with_headers)
    if not np.array_equal(at, starts + sizes):
        raise _SuspiciousError
    time_delta[append_time] = 0
    return _Fields(
        _sum(base_offset, offset_delta),
        _sum(base_time, time_delta),
        append_time,
        key,
        value,
        headers,
    )


def _record_starts(raw: bytes, group: list[Batch]) -> tuple[Ints, Ints]:
    """The start of each record after its size, and the size: the only loop over records."""
    starts: list[int] = []
    sizes: list[int] = []
    start, size_of, at = starts.append, sizes.append, 0
    try:
        for header, payload in group:
            end = at + len(payload)
            for _ in range(declared_count(header)):
                byte = raw[at]
                at += 1
                size = byte & 0x7F
                shift = 7
                while byte >= 0x80:
                    byte = raw[at]
                    at += 1
                    size |= (byte & 0x7F) << shift
                    shift += 7
                size >>= 1
                start(at)
                size_of(size)
                at += size
            if at != end:
                raise _SuspiciousError
    except IndexError:
        raise _SuspiciousError from None
    return np.array(starts, np.int64), np.array(sizes, np.int64)


def _numbers(data: np.ndarray, at: Ints, most_bytes: int) -> tuple[Ints, Ints]:
    """The zigzag number at each position, and the position after it; past the end: zeros."""
    last = len(data) - 1
    byte = data[np.minimum(at, last)]
    raw = (byte & 0x7F).astype(np.uint64)
    at = at + 1
    more = np.flatnonzero(byte >= 0x80)
    for index in range(1, most_bytes):
        if not len(more):
            break
        byte = data[np.minimum(at[more], last)]
        if index == most_bytes - 1 and (byte >= _LAST_BYTES[most_bytes]).any():
            raise _SuspiciousError
        raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        at[more] += 1
        more = more[byte >= 0x80]
    if len(more):
        raise _SuspiciousError
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), at


def _field_ranges(data: np.ndarray, at: Ints) -> tuple[_FieldRange, Ints]:
    size, start = _numbers(data, at, _VARINT_BYTES)
    end = start + np.maximum(size, 0)
    return _FieldRange(start, end, size < 0), end


def _headers(data: np.ndarray, at: Ints, *, wanted: bool) -> tuple[_Headers, Ints]:
    """Reads the n-th headers of all records at once, for each n: most records have few."""
    left, at = _numbers(data, at, _VARINT_BYTES)
    if (left < 0).any() or (left > _MOST_HEADERS).any():
        raise _SuspiciousError
    taken: list[tuple[Ints, _FieldRange, _FieldRange]] = []
    rows = np.flatnonzero(left)
    while len(rows):
        name, behind = _field_ranges(data, at[rows])
        content, behind = _field_ranges(data, behind)
        if name.null.any() or (behind > len(data)).any():
            raise _SuspiciousError
        at[rows] = behind
        left[rows] -= 1
        if wanted:
            taken.append((rows, name, content))
        rows = rows[left[rows] > 0]
    if not taken:
        none = np.empty(0, np.int64)
        empty = _FieldRange(none, none, np.empty(0, bool))
        return _Headers(none, empty, empty), at
    order = np.argsort(np.concatenate([name.start for _, name, _ in taken]))
    record = np.concatenate([rows for rows, _, _ in taken])[order]
    name, content = (
        _FieldRange(
            *(np.concatenate([each[which][part] for each in taken])[order] for part in range(3))
        )
        for which in (1, 2)
    )
    return _Headers(record, name, content), at


def _sum(base: Ints, delta: Ints) -> Ints:
    total = base + delta
    if ((total < base) != (delta < 0)).any():
        raise _SuspiciousError
    return total


def _between(binary: pa.Buffer, edges: np.ndarray) -> pa.Array:
    """The bytes between neighbouring edges, without a copy."""
    count = max(len(edges) - 1, 0)
    if not len(edges):
        edges = np.zeros(1, np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(edges.astype(np.int32)), binary], null_count=0
    )


def _headers_column(binary: pa.Buffer, headers: _Headers, rows: Ints, count: int) -> pa.Array:
    selected = np.zeros(count, bool)
    selected[rows] = True
    chosen = np.flatnonzero(selected[headers.record])
    per_row = np.bincount(headers.record[chosen], minlength=count)[rows]
    edges = np.empty((len(chosen), 4), np.int32)
    for index, field_range in enumerate((headers.name, headers.content)):
        edges[:, 2 * index] = field_range.start[chosen]
        edges[:, 2 * index + 1] = field_range.end[chosen]
    columns = _between(binary, edges.reshape(-1))
    name = columns.take(pa.array(np.arange(0, 4 * len(chosen), 4))).view(pa.string())
    content = columns.take(
        pa.array(np.arange(2, 4 * len(chosen), 4), mask=headers.content.null[chosen])
    )
    name_bytes = name.buffers()[2]
    seen = np.frombuffer(name_bytes, np.uint8) if name_bytes else np.empty(0, np.uint8)
    pairs = pa.StructArray.from_arrays([readable_names(name, seen), content], fields=list(HEADER))
    ends = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(ends), pairs, type=HEADERS, mask=pa.array(per_row == 0)
    )
