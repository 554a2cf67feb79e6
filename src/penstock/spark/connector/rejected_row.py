"""Sends rows that a database rejected to a dead-letter topic, from the task that has them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from penstock.spark.pipeline.dead_letter import REASON
from penstock.spark.sink.writer import batch_writer

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [StructField("value", BinaryType()), StructField("headers", ArrayType(_HEADER))]
)
ARROW = pa.schema(
    [
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row by its columns, and the reason."""

    row: dict[str, Any]
    reason: str


def send(rows: Sequence[RejectedRow], bootstrap: str, topic: str) -> None:
    """Return when the rows are written."""
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    batch_writer(options, SCHEMA, overwrite=False).write(_batches(rows))


def _batches(rows: Sequence[RejectedRow]) -> Iterator[pa.RecordBatch]:
    values = [msgspec.json.encode(each.row, enc_hook=str) for each in rows]
    headers = [[{"key": REASON, "value": each.reason.encode()}] for each in rows]
    yield pa.RecordBatch.from_arrays(
        [pa.array(values, ARROW.field(0).type), pa.array(headers, ARROW.field(1).type)],
        schema=ARROW,
    )
