"""Sends rows that a database rejected to a dead-letter topic, from the task that has them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from penstock.record.dead_letter import DeadLetter, dead_letter_headers
from penstock.spark.pipeline.dead_letter import source_of
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


def send(
    rows: Sequence[RejectedRow], connection: Mapping[str, str], topic: str, pipeline: str
) -> None:
    """Return when the rows are written. `connection`: options `kafka.*`."""
    options = {**connection, "topic": topic}
    batch_writer(options, SCHEMA, overwrite=False).write(_batches(rows, pipeline))


def _batches(rows: Sequence[RejectedRow], pipeline: str) -> Iterator[pa.RecordBatch]:
    values = [msgspec.json.encode(each.row, enc_hook=str) for each in rows]
    headers = [_headers(each.reason, pipeline) for each in rows]
    yield pa.RecordBatch.from_arrays(
        [pa.array(values, ARROW.field(0).type), pa.array(headers, ARROW.field(1).type)],
        schema=ARROW,
    )


def _headers(reason: str, pipeline: str) -> list[dict[str, str | bytes | None]]:
    letter = DeadLetter(error=reason, source=source_of(pipeline), attempt=1)
    return [{"key": name, "value": value} for name, value in dead_letter_headers(letter, [])]
