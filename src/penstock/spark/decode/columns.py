"""The columns that a reader returns to Spark: those of the `kafka` format, in its order."""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.spark.options import MAX_INT64, MIN_INT64

NAMES: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS: Final = pa.list_(HEADER)
_TYPES: Final = (
    pa.binary(),
    pa.binary(),
    pa.string(),
    pa.int32(),
    pa.int64(),
    TIMESTAMP,
    pa.int32(),
    HEADERS,
)

MAX_MS: Final = MAX_INT64 // 1000
"""The last millisecond within Spark's 64-bit microseconds; later ones become its last timestamp."""


class RecordBounds(NamedTuple):
    """The records to return: `first <= offset < end`, and timestamps, both included."""

    first: int = MIN_INT64
    end: int = MAX_INT64
    oldest_ms: int = MIN_INT64
    newest_ms: int = MAX_INT64


class DecodedColumns(NamedTuple):
    """The columns that differ between records; `headers` is None if not requested."""

    key: pa.Array
    value: pa.Array
    offset: pa.Array
    timestamp: pa.Array
    timestamp_type: pa.Array
    headers: pa.Array | None


class PartitionColumns:
    """Adds the two columns that are the same in all rows of a partition."""

    def __init__(self, topic: str, partition: int, *, with_headers: bool) -> None:
        count = len(NAMES) - (not with_headers)
        self._schema = pa.schema(list(zip(NAMES[:count], _TYPES[:count], strict=True)))
        self._topic, self._partition = topic.encode(), partition
        self._rows = 0
        self._grow(1 << 12)

    def completed(self, decoded: DecodedColumns) -> pa.RecordBatch:
        rows = len(decoded.offset)
        if rows > self._rows:
            self._grow(rows)
        columns = [
            decoded.key,
            decoded.value,
            self._topics.slice(0, rows),
            self._partitions.slice(0, rows),
            decoded.offset,
            decoded.timestamp,
            decoded.timestamp_type,
        ]
        if decoded.headers is not None:
            columns.append(decoded.headers)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _grow(self, rows: int) -> None:
        size = len(self._topic)
        ends = np.arange(0, (rows + 1) * size, size, dtype=np.int32) if size else np.zeros(rows + 1)
        self._topics = pa.StringArray.from_buffers(
            rows, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(self._topic * rows)
        )
        # Not `pa.array`, which imports pandas first: a third of a second in each worker.
        numbers = pa.py_buffer(np.full(rows, self._partition, dtype=np.int32))
        self._partitions = pa.Array.from_buffers(pa.int32(), rows, [None, numbers])
        self._rows = rows


def readable_names(names: pa.Array, data: np.ndarray) -> pa.Array:
    """Header keys as text: replaces bytes that are not UTF-8, like Java."""
    if not len(data) or int(data.max()) < 0x80:
        return names
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.cast(pa.binary())
        return pa.array([each.as_py().decode("utf-8", "replace") for each in raw], pa.string())
    return names
