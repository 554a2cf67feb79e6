"""The decoder on the C extension: copies records once, from the fetched bytes into Arrow's."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.record.batch import BatchHeader, declared_count, read_header
from penstock.spark.decode._fill import fill, fill_plain
from penstock.spark.decode.columns import (
    HEADER,
    TIMESTAMP,
    DecodedColumns,
    RecordBounds,
    readable_names,
)
from penstock.spark.decode.visible import VisibleBatches
from penstock.types import Buffer

ROWS: Final = 1 << 16
HEADERS: Final = 1 << 18
DATA_BYTES: Final = 8 << 20
"""Limits of a chunk: rows, headers and bytes of values; a single record may exceed them."""
_COUNTERS: Final = 10
_START: Final = (0, 0, -1)
"""The position before the first record of the first batch."""


class StopReason(IntEnum):
    """Why `fill_plain` returned, as numbered in `_fill.c`."""

    ALL_READ = 0
    CHUNK_FULL = 1
    FOR_PYTHON = 2


class NativeDecoder:
    """Gathers records of any number of batches and yields them when a chunk is full.

    The fetched bytes may be reused at once. Arrow owns a yielded chunk, which never changes again.
    """

    def __init__(self, wanted: RecordBounds, *, with_headers: bool) -> None:
        self.wanted, self._with_headers = wanted, with_headers
        self._chunk: _Chunk | None = None

    def decode(
        self, fetched: memoryview, batches: VisibleBatches, *, plain: bool
    ) -> Iterator[DecodedColumns]:
        """Records of fetched bytes; `plain`: no batch is hidden except control batches.

        Then most batches never reach Python. Those that do go through `batches`.
        """
        if not plain:
            yield from self.decode_batches(batches(fetched))
            return
        position = _START
        while True:
            chunk = self._chunk or self._new(HEADERS, DATA_BYTES)
            position, reason = fill_plain(
                fetched, position, batches.check_crcs, self.wanted, self._with_headers,
                chunk.room, chunk.buffers,
            )  # fmt: skip
            match StopReason(reason):
                case StopReason.ALL_READ:
                    return
                case StopReason.CHUNK_FULL:
                    yield from self._emptied(len(fetched) - position[0])
                case StopReason.FOR_PYTHON:
                    at = position[0]
                    end = at + read_header(fetched, at).size_bytes
                    yield from self.decode_batches(batches(fetched[at:end]))
                    position = (end, 0, -1)

    def decode_batches(
        self, batches: Iterable[tuple[BatchHeader, Buffer]]
    ) -> Iterator[DecodedColumns]:
        """Records of payloads that Python has decompressed."""
        for header, payload in batches:
            at, left = 0, declared_count(header)
            append_time = header.is_log_append_time
            time = header.max_timestamp if append_time else header.base_timestamp
            batch = (header.base_offset, time, append_time)
            while True:
                chunk = self._chunk or self._new(HEADERS, DATA_BYTES)
                at, left = fill(
                    payload, at, left, batch, self.wanted, self._with_headers,
                    chunk.room, chunk.buffers,
                )  # fmt: skip
                if not left:
                    break
                yield from self._emptied(len(payload) - at)

    def rest(self) -> Iterator[DecodedColumns]:
        """Records that were decoded but not returned yet."""
        chunk, self._chunk = self._chunk, None
        if chunk is not None and chunk.rows:
            yield chunk.decoded()

    def _emptied(self, bytes_left: int) -> Iterator[DecodedColumns]:
        """Make room for the next record: yield a full chunk, or replace one that is too small."""
        if self._chunk is not None and self._chunk.rows:
            yield from self.rest()
        else:
            # The record is larger than a usual chunk; one for all remaining bytes surely holds it.
            self._new(bytes_left, bytes_left)

    def _new(self, headers: int, data_bytes: int) -> "_Chunk":
        self._chunk = _Chunk(headers if self._with_headers else 0, data_bytes)
        return self._chunk


class _Chunk:
    """Buffers in Arrow's layout, in the order of `_fill.c`. Memory is used as it is written."""

    def __init__(self, headers: int, data_bytes: int) -> None:
        rows, header_bytes = ROWS, data_bytes if headers else 0
        self.room = (rows, headers)
        self.counts = np.zeros(_COUNTERS, np.int64)
        self.buffers = (
            np.empty(rows, np.int64),
            np.empty(rows, np.int64),
            np.empty(rows, np.int32),
            *_column(rows, data_bytes),
            *_column(rows, data_bytes),
            *_column(rows, 0)[:2],
            _ends(headers),
            np.empty(header_bytes, np.uint8),
            *_column(headers, header_bytes),
            self.counts,
        )

    @property
    def rows(self) -> int:
        return int(self.counts[0])

    def decoded(self) -> DecodedColumns:
        offsets, timestamps, kinds, *columns = self.buffers
        key_ends, key_valid, key_data, value_ends, value_valid, value_data, *headers = columns
        rows, key_bytes, value_bytes, *header_counts = map(int, self.counts)
        _, _, _, null_keys, null_values, _, _ = header_counts
        return DecodedColumns(
            _array(pa.binary(), rows, null_keys, key_valid, key_ends, key_data[:key_bytes]),
            _array(
                pa.binary(), rows, null_values, value_valid, value_ends, value_data[:value_bytes]
            ),
            _array(pa.int64(), rows, 0, None, offsets),
            _array(TIMESTAMP, rows, 0, None, timestamps),
            _array(pa.int32(), rows, 0, None, kinds),
            self._headers(rows, *headers) if self.room[1] else None,
        )

    def _headers(
        self,
        rows: int,
        ends: np.ndarray,
        valid: np.ndarray,
        name_ends: np.ndarray,
        name_data: np.ndarray,
        content_ends: np.ndarray,
        content_valid: np.ndarray,
        content_data: np.ndarray,
        _counts: np.ndarray,
    ) -> pa.Array:
        headers, name_bytes, content_bytes, _, _, nulls, bare = map(int, self.counts[3:])
        used = name_data[:name_bytes]
        names = _array(pa.string(), headers, 0, None, name_ends, used)
        contents = _array(
            pa.binary(), headers, nulls, content_valid, content_ends, content_data[:content_bytes]
        )
        pairs = pa.StructArray.from_arrays(
            [readable_names(names, used), contents], fields=list(HEADER)
        )
        layout = [pa.py_buffer(valid) if bare else None, pa.py_buffer(ends)]
        return pa.Array.from_buffers(
            pa.list_(HEADER), rows, layout, null_count=bare, children=[pairs]
        )


def _column(rows: int, data_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    valid = np.full((rows + 7) // 8, 0xFF, np.uint8)
    return _ends(rows), valid, np.empty(data_bytes, np.uint8)


def _ends(rows: int) -> np.ndarray:
    ends = np.empty(rows + 1, np.int32)
    ends[0] = 0
    return ends


def _array(
    kind: pa.DataType, rows: int, nulls: int, valid: np.ndarray | None, *buffers: np.ndarray
) -> pa.Array:
    mask = pa.py_buffer(valid) if nulls and valid is not None else None
    return pa.Array.from_buffers(kind, rows, [mask, *map(pa.py_buffer, buffers)], null_count=nulls)
