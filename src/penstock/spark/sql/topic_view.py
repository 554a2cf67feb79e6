"""A topic as a SQL table: the fields of its values as columns, by a given or inferred format."""

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
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
    """The topics that a query names, with or without backquotes, in any case.

    SQL does not tell names apart that differ only in case, so the query must name one of them.
    """
    found: dict[str, list[str]] = {}
    for each in topics:
        if _names(query, each, re.IGNORECASE):
            found.setdefault(each.lower(), []).append(each)
    return [_spelled(query, alike) for alike in found.values()]


def _spelled(query: str, alike: list[str]) -> str:
    """The topic that the query names in its own spelling, of those that differ only in case."""
    exact = [each for each in alike if len(alike) == 1 or _names(query, each)]
    if len(exact) == 1:
        return exact[0]
    raise ConfigError(
        f"the topics {' and '.join(alike)} differ only in case, and SQL takes them for one: name "
        "one of them as it is written"
    )


def _names(query: str, topic: str, flags: re.RegexFlag = re.NOFLAG) -> bool:
    quoted_or_plain = rf"`{re.escape(topic)}`|(?<![\w.`-]){re.escape(topic)}(?![\w.`-])"
    return re.search(quoted_or_plain, query, flags) is not None


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
    taken = {each.lower() for each in fields}  # SQL takes Key and key for one column
    beside = [each for each in (*RECORD_FIELDS, "_error") if each not in taken]
    return read.select(
        *(F.col(f"{FIELDS}.{quoted(each)}").alias(each) for each in fields),
        *(_beside(each) for each in beside),
    )


def _beside(name: str) -> Column:
    if name == "_error":
        return F.col(name)
    column = F.col(f"{RECORD}.{name}")
    return (column.cast("string") if name in {"key", "value"} else column).alias(name)
