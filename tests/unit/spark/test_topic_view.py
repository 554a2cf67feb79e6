"""A topic as a SQL table: the columns of JSON values whose fields have any name."""

import pytest
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.spark.pipeline.value_format import ValueFormat
from penstock.spark.sql.topic_view import mentioned, of_schema


def of(*fields: tuple[str, object]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])  # type: ignore[arg-type]


def test_fields_of_json_may_have_any_name() -> None:
    nested = of(("first-name", StringType()), ("a`b c", ArrayType(of(("x.y", LongType())))))
    found = of_schema(of(("user", nested), ("@id", LongType()), ("", LongType())))
    expected = "`user` struct<`first-name`:string,`a``b c`:array<struct<`x.y`:bigint>>>"
    assert found == ValueFormat("json", f"{expected}, `@id` bigint")


def test_json_without_fields_is_text() -> None:
    assert of_schema(of(("_corrupt_record", StringType()))) == ValueFormat("text")


def test_a_query_names_topics_in_any_case() -> None:
    known = ["events", "my-topic", "a.b", "other"]
    assert mentioned("select * from EVENTS join `my-topic` using (id)", known) == [
        "events",
        "my-topic",
    ]
    assert mentioned("select * from `a.b`", known) == ["a.b"]


def test_a_topic_is_not_taken_for_one_that_differs_only_in_case() -> None:
    known = ["Orders", "orders"]
    assert mentioned("select * from Orders", known) == ["Orders"]
    assert mentioned("select * from `orders`", known) == ["orders"]
    for query in ("select * from ORDERS", "select * from Orders join orders using (id)"):
        with pytest.raises(ConfigError, match="Orders and orders differ only in case"):
            mentioned(query, known)
