"""A topic as a SQL table: the fields of its values as columns, by a given or inferred format."""

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from penstock.spark.data_source import ddl, quoted
from penstock.spark.pipeline.value_format import (
    FIELDS,
    RECORD,
    RECORD_FIELDS,
    ValueFormat,
    parsed,
)

_CORRUPT_RECORD = "_corrupt_record"
"""The column that Spark adds to an inferred schema if some value is not JSON."""
SAMPLE = 1000
"""How many values are read to infer the columns."""


def mentioned(query: str, topics: Iterable[str]) -> list[str]:
    """The topics that a query names, with or without backquotes."""
    return [
        each
        for each in topics
        if f"`{each}`" in query
        or re.search(rf"(?<![\w.`-]){re.escape(each)}(?![\w.`-])", query, re.IGNORECASE)
    ]


def inferred(records: DataFrame) -> ValueFormat:
    """JSON if most values of a sample look like objects, else text.

    Values that do not fit get `_error`: one bad record does not hide the fields of all others.
    """
    text = F.col("value").cast("string")
    values = [row[0] for row in records.select(text).limit(SAMPLE).collect() if row[0] is not None]
    objects = [each for each in values if looks_like_object(each)]
    if not objects or len(objects) * 2 <= len(values):
        return ValueFormat("text")
    spark = records.sparkSession
    return of_schema(spark.read.json(spark.sparkContext.parallelize(objects, 1)).schema)


def of_schema(schema: StructType) -> ValueFormat:
    """JSON with these columns; text if there are none. Fields may have any name in JSON."""
    fields = [each for each in schema.fields if each.name not in {"", _CORRUPT_RECORD}]
    if not fields:
        return ValueFormat("text")
    columns = ", ".join(f"{quoted(each.name)} {ddl(each.dataType)}" for each in fields)
    return ValueFormat("json", columns)


def looks_like_object(text: str) -> bool:
    return text.strip().startswith("{") and text.strip().endswith("}")


def as_table(records: DataFrame, value_format: ValueFormat) -> DataFrame:
    """Fields as columns, then the columns of the record. If the format cannot read a value, its
    fields are null and `_error` says why, so that a query works whatever is in the topic.
    """
    read = parsed(records, value_format)
    fields = [each for each in read.select(f"{FIELDS}.*").columns if each != "_corrupt"]
    beside = [each for each in (*RECORD_FIELDS, "_error") if each not in fields]
    return read.select(
        *(F.col(f"{FIELDS}.{quoted(each)}").alias(each) for each in fields),
        *(_beside(each) for each in beside),
    )


def _beside(name: str) -> Column:
    if name == "_error":
        return F.col(name)
    column = F.col(f"{RECORD}.{name}")
    return (column.cast("string") if name in {"key", "value"} else column).alias(name)
