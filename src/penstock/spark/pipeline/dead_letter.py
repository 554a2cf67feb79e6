"""Dead letters: rows that failed, as records with the reason in a header."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.pipeline.value_format import RECORD

REASON: Final = "penstock.reason"
PIPELINE: Final = "penstock.pipeline"
ORIGIN: Final = {
    "topic": "penstock.topic",
    "partition": "penstock.partition",
    "offset": "penstock.offset",
}
"""Headers with the origin of a record from a topic."""
ORIGIN_OF_LINE: Final = {"file": "penstock.file", "position": "penstock.position"}
"""Headers with the origin of a line of a file."""


def dead_records(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """Dead letters of rows that still have their record: its key and value stay byte for byte."""
    key = F.col(f"{RECORD}.key").alias("key")
    return rows.select(key, *_value(reason, pipeline, ORIGIN))


def dead_lines(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """Dead letters of lines of a file."""
    return rows.select(*_value(reason, pipeline, ORIGIN_OF_LINE))


def _value(reason: Column, pipeline: str, origin: Mapping[str, str]) -> tuple[Column, Column]:
    origin_headers = [_header(name, F.col(f"{RECORD}.{field}")) for field, name in origin.items()]
    headers = F.array(_header(REASON, reason), _header(PIPELINE, F.lit(pipeline)), *origin_headers)
    return F.col(f"{RECORD}.value").alias("value"), headers.alias("headers")


def dead_rows(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """Dead letters of rows that only have columns: as JSON."""
    return rows.select(
        F.to_json(F.struct("*")).alias("value"),
        F.array(_header(REASON, reason), _header(PIPELINE, F.lit(pipeline))).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
