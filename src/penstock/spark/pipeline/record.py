"""Turns rows into records: the key and value of a topic."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

AS_JSON: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of `to_json`, which by default cuts times off after milliseconds: different keys would
become one.
"""


def as_records(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The columns as a JSON object. The key is the text of a column or, for several, a JSON object,
    so that different keys stay different.
    """
    value = F.to_json(F.struct("*"), AS_JSON).alias("value")
    return rows.select(*_key(key), value)


def with_key(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows that are records already, with another key if one is named."""
    if not key:
        return rows
    (named,) = _key(key)
    return rows.withColumn("key", named)


def by_one_task(records: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """One task for a sink that writes exactly once: each partition must have one writer, but rows
    of any task may have a key of any partition. Without a shuffle, a retry sees the same order.
    """
    given = {name.lower(): value.strip().lower() for name, value in options.items()}
    return records.coalesce(1) if given.get("transactional") == "true" else records


def _key(key: Sequence[str]) -> list[Column]:
    if not key:
        return []
    if len(key) == 1:
        return [F.col(f"`{key[0]}`").cast("string").alias("key")]
    fields = F.struct(*(F.col(f"`{each}`") for each in key))
    return [F.to_json(fields, AS_JSON).alias("key")]
