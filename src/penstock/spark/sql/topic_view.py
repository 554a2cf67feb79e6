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

_CORRUPT_RECORD = "_corrupt_record"
"""What Spark adds to a schema where it found something that is no JSON."""
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
    """JSON if most values of a sample look like objects, else text.

    Those that do not fit have `_error`: one bad record does not hide the fields of all others.
    """
    text = F.col("value").cast("string")
    values = [row[0] for row in records.select(text).limit(SAMPLE).collect() if row[0] is not None]
    objects = [each for each in values if looks_like_object(each)]
    if not objects or len(objects) * 2 <= len(values):
        return ValueFormat("text")
    spark = records.sparkSession
    schema = spark.read.json(spark.sparkContext.parallelize(objects, 1)).schema
    fields = [each for each in schema.fields if each.name != _CORRUPT_RECORD]
    if not fields:
        return ValueFormat("text")
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
    return ValueFormat("json", ddl)


def looks_like_object(text: str) -> bool:
    return text.strip().startswith("{") and text.strip().endswith("}")


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
