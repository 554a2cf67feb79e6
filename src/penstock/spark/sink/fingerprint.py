"""A number by which a micro-batch's rows are recognized, in whatever order and tasks they come."""

from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.spark.sink.encode import ArrowColumn, RecordColumns, partitions

_HASHES: Final = (1 << 31) - 1
_KEY, _VALUE, _MIX = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
)
_HALF: Final = np.uint64(32)


def fingerprint(rows: RecordColumns, count: int) -> int:
    """The sum of a hash of each row's key and value, so that fingerprints of parts can be added.

    Timestamps are left out, since they may differ between attempts.
    """
    mixed = _hashes(rows.key, count) * _KEY + _hashes(rows.value, count) * _VALUE
    for _ in range(2):
        mixed = (mixed ^ (mixed >> _HALF)) * _MIX
    return int(np.add.reduce(mixed ^ (mixed >> _HALF), dtype=np.uint64))


def _hashes(column: ArrowColumn | None, count: int) -> npt.NDArray[np.uint64]:
    """A hash of each field: its partition among very many, which is computed in C."""
    found = np.empty(count, np.int32)
    partitions(column, _HASHES, found.data)
    return found.astype(np.uint64)
