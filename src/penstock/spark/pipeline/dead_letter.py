"""Dead letters: rows that failed, as records whose headers say why; see `record.dead_letter`."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.record.dead_letter import (
    ATTEMPT,
    ERROR,
    NAMES,
    ORIGIN_GROUP,
    ORIGIN_OFFSET,
    ORIGIN_PARTITION,
    ORIGIN_TOPIC,
    SOURCE,
)
from penstock.spark.pipeline.record import AS_JSON
from penstock.spark.pipeline.value_format import RECORD

ORIGIN: Final = {"topic": ORIGIN_TOPIC, "partition": ORIGIN_PARTITION, "offset": ORIGIN_OFFSET}
"""Headers with the origin of a record from a topic."""
ORIGIN_OF_LINE: Final = {"file": "penstock-origin-file", "position": "penstock-origin-position"}
"""Headers with the origin of a line of a file."""
ONCE: Final = "1"
"""The attempt count: Spark tries a row once, since a value that cannot be read now never can."""
SECURITY: Final = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
HEADERS: Final = "array<struct<key:string,value:binary>>"


def dead_records(
    rows: DataFrame, reason: Column, pipeline: str, group: str | None = None
) -> DataFrame:
    """Dead letters of rows that still have their record. Its key, value and own headers stay byte
    for byte, so that it can be redriven.
    """
    names = _origin(ORIGIN) | ({} if group is None else {ORIGIN_GROUP: F.lit(group)})
    own = F.filter(f"{RECORD}.headers", lambda each: ~each["key"].isin(*sorted(NAMES)))
    return rows.select(
        F.col(f"{RECORD}.key").alias("key"),
        F.col(f"{RECORD}.value").alias("value"),
        F.concat(
            F.coalesce(own.cast(HEADERS), F.array().cast(HEADERS)),
            _headers(reason, pipeline, names),
        ).alias("headers"),
    )


def dead_lines(
    rows: DataFrame, reason: Column, pipeline: str, _group: str | None = None
) -> DataFrame:
    """Dead letters of lines of a file."""
    return rows.select(
        F.col(f"{RECORD}.value").alias("value"),
        _headers(reason, pipeline, _origin(ORIGIN_OF_LINE)).alias("headers"),
    )


def dead_rows(
    rows: DataFrame, reason: Column, pipeline: str, _group: str | None = None
) -> DataFrame:
    """Dead letters of rows that have only columns, as JSON."""
    return rows.select(
        F.to_json(F.struct("*"), AS_JSON).alias("value"),
        _headers(reason, pipeline, {}).alias("headers"),
    )


def connection_of(options: Mapping[str, str]) -> dict[str, str]:
    """The security options of a query: its dead letters are written with the same."""
    return {key: value for key, value in options.items() if key.lower().startswith(SECURITY)}


def source_of(pipeline: str) -> str:
    return f"spark:{pipeline}"


def _origin(fields: Mapping[str, str]) -> dict[str, Column]:
    return {name: F.col(f"{RECORD}.{field}") for field, name in fields.items()}


def _headers(reason: Column, pipeline: str, more: Mapping[str, Column]) -> Column:
    texts = {
        ERROR: reason,
        SOURCE: F.lit(source_of(pipeline)),
        ATTEMPT: F.lit(ONCE),
        **more,
    }
    return F.array(*(_header(name, value) for name, value in texts.items())).cast(HEADERS)


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
