"""A number by which a micro-batch's rows are recognized, in whatever order and tasks they come."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.spark.sink.encode import ArrowColumn, RecordColumns, partitions
from penstock.spark.sink.rows import SinkRows, binary_column

_HASHES: Final = (1 << 31) - 1
_KEY, _VALUE, _TOPIC, _PARTITION, _TIME, _NAME, _HEADER, _MIX = (
    np.uint64(each)
    for each in (
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0xA0761D6478BD642F,
        0xE7037ED1A0B428DB,
        0x8EBC6AF09C88C6E3,
        0x589965CC75374CC3,
        0x1D8E4E27C47D124F,
        0xD6E8FEB86659FD93,
    )
)
_HALF: Final = np.uint64(32)

Hashes = npt.NDArray[np.uint64]


def fingerprint(seen: SinkRows) -> int:
    """The sum of a hash of each row, so that fingerprints of parts can be added.

    A hash covers all that the row's columns say. A timestamp that the sink sets itself is left out,
    since it differs between attempts.
    """
    rows, count = seen.rows, seen.count
    mixed = _hashes(rows.key, count) * _KEY + _hashes(rows.value, count) * _VALUE
    for topic, chosen in seen.topics or ():
        mixed[chosen] += _hashes(binary_column(pa.array([topic])), 1) * _TOPIC
    if seen.partitions is not None:
        mixed += (seen.partitions + 1).astype(np.uint64) * _PARTITION
    if seen.is_stamped is not None:
        mixed += seen.timestamps.view(np.uint64) * seen.is_stamped * _TIME
    if rows.lists is not None:
        mixed += _of_headers(rows, rows.lists, count)
    return int(np.add.reduce(_mixed(mixed), dtype=np.uint64))


def _hashes(column: ArrowColumn | None, count: int) -> Hashes:
    """A hash of each field: its partition among very many, which is computed in C."""
    found = np.empty(count, np.int32)
    partitions(column, _HASHES, found.data)
    return found.astype(np.uint64)


def _of_headers(rows: RecordColumns, lists: ArrowColumn, count: int) -> Hashes:
    """A hash of each row's headers, in their order; 0 for none."""
    width = np.int64 if lists.width == 8 else np.int32
    ends = np.frombuffer(lists.offsets, width)[lists.first : lists.first + count + 1]
    ends = ends.astype(np.int64)
    entries = int(ends[-1]) if count else 0
    hashes = _hashes(rows.names, entries) * _NAME + _hashes(rows.values, entries) * _HEADER
    sizes = np.diff(ends)
    if lists.valid is not None:  # a null may have entries, which are not headers
        bits = np.unpackbits(np.frombuffer(lists.valid, np.uint8), bitorder="little")
        sizes *= bits[lists.first : lists.first + count]
    stops = np.cumsum(sizes)
    places = np.arange(stops[-1] if count else 0) - np.repeat(stops - sizes, sizes)
    each = hashes[np.repeat(ends[:-1], sizes) + places] + places.astype(np.uint64)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(_mixed(each), dtype=np.uint64)))
    found: Hashes = sums[stops] - sums[stops - sizes]
    return found


def _mixed(hashes: Hashes) -> Hashes:
    for _ in range(2):
        hashes = (hashes ^ (hashes >> _HALF)) * _MIX
    return hashes ^ (hashes >> _HALF)
