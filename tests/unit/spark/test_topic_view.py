"""A topic as a SQL table: the columns of JSON values whose fields have any name."""

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from penstock.spark.pipeline.value_format import ValueFormat
from penstock.spark.sql.topic_view import of_schema


def of(*fields: tuple[str, object]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])  # type: ignore[arg-type]


def test_fields_of_json_may_have_any_name() -> None:
    nested = of(("first-name", StringType()), ("a`b c", ArrayType(of(("x.y", LongType())))))
    found = of_schema(of(("user", nested), ("@id", LongType()), ("", LongType())))
    expected = "`user` struct<`first-name`:string,`a``b c`:array<struct<`x.y`:bigint>>>"
    assert found == ValueFormat("json", f"{expected}, `@id` bigint")


def test_json_without_fields_is_text() -> None:
    assert of_schema(of(("_corrupt_record", StringType()))) == ValueFormat("text")
