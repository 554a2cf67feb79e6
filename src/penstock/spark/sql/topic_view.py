"""A topic as a table of SQL: its values' fields as columns, by a format or as they look."""

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.pipeline.value_format import (
    FIELDS,
    RECORD,
    RECORD_FIELDS,
    ValueFormat,
    parsed,
)

SAMPLE = 1000
"""How many values decide what the columns are."""


def mentioned(query: str, topics: Iterable[str]) -> list[str]:
    """The topics that a query names, with or without backquotes."""
    return [
        each
        for each in topics
        if f"`{each}`" in query
        or re.search(rf"(?<![\w.`-]){re.escape(each)}(?![\w.`-])", query, re.IGNORECASE)
    ]


def inferred(records: DataFrame) -> ValueFormat:
    """JSON if every value of a sample is an object, else text."""
    text = F.col("value").cast("string")
    values = [row[0] for row in records.select(text).limit(SAMPLE).collect() if row[0] is not None]
    if not values or not all(each.lstrip().startswith("{") for each in values):
        return ValueFormat("text")
    spark = records.sparkSession
    schema = spark.read.json(spark.sparkContext.parallelize(values, 1)).schema
    if "_corrupt_record" in schema.names or not schema.names:
        return ValueFormat("text")
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in schema.fields)
    return ValueFormat("json", ddl)


def as_table(records: DataFrame, value_format: ValueFormat) -> DataFrame:
    """Fields as columns, then what the record has beside them. A value that the format cannot read
    has no fields, and `_error` says why: a question gets an answer, whatever lies in the topic.
    """
    read = parsed(records, value_format)
    fields = [each for each in read.select(f"{FIELDS}.*").columns if each != "_corrupt"]
    beside = [each for each in (*RECORD_FIELDS, "_error") if each not in fields]
    return read.select(
        *(F.col(f"{FIELDS}.`{each}`").alias(each) for each in fields),
        *(_beside(each) for each in beside),
    )


def _beside(name: str) -> Column:
    if name == "_error":
        return F.col(name)
    column = F.col(f"{RECORD}.{name}")
    return (column.cast("string") if name in {"key", "value"} else column).alias(name)
