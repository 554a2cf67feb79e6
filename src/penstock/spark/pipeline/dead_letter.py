"""Dead letters: rows that failed, as records that say what was wrong with them."""

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
"""Headers that tell where the record came from, if it came from a topic."""
ORIGIN_OF_LINE: Final = {"file": "penstock.file", "position": "penstock.position"}
"""The same of a line of a file."""


def dead_records(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """Rows that still have their record: its key and value go on byte for byte."""
    key = F.col(f"{RECORD}.key").alias("key")
    return rows.select(key, *_value(reason, pipeline, ORIGIN))


def dead_lines(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """The same where the record is a line of a file."""
    return rows.select(*_value(reason, pipeline, ORIGIN_OF_LINE))


def _value(reason: Column, pipeline: str, origin: Mapping[str, str]) -> tuple[Column, Column]:
    told = [_header(name, F.col(f"{RECORD}.{field}")) for field, name in origin.items()]
    headers = F.array(_header(REASON, reason), _header(PIPELINE, F.lit(pipeline)), *told)
    return F.col(f"{RECORD}.value").alias("value"), headers.alias("headers")


def dead_rows(rows: DataFrame, reason: Column, pipeline: str) -> DataFrame:
    """Rows that have columns only: they go as JSON."""
    return rows.select(
        F.to_json(F.struct("*")).alias("value"),
        F.array(_header(REASON, reason), _header(PIPELINE, F.lit(pipeline))).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
