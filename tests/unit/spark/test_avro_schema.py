"""Avro schemas: their columns, and the errors about types without a column."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.sql.pandas.types import to_arrow_type

from penstock.errors import ConfigError
from penstock.spark.avro.schema import record_type
from penstock.spark.avro.schema_file import schema_text
from penstock.spark.avro.values import decoder
from penstock.spark.data_source import PenstockSource
from penstock.spark.options import Options
from penstock.spark.source.settings import ValueSettings, read_value

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": "shop.Row", "fields": fields}


def columns(*types: Any) -> str:
    return record_type(json.dumps(record(*types))).spark.simpleString()


def encoded(schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), row)
    return out.getvalue()


def decoded(schema: dict[str, Any], *values: bytes | None) -> list[Any]:
    decode = decoder(record_type(json.dumps(schema)))
    found: list[Any] = decode(pa.array(values, pa.binary())).to_pylist()
    return found


def logical(under: str, name: str) -> dict[str, str]:
    return {"type": under, "logicalType": name}


def test_types_match_those_of_spark() -> None:
    found = columns(
        "long",
        ["null", "string"],
        {"type": "array", "items": "double"},
        {"type": "map", "values": logical("long", "timestamp-millis")},
        logical("int", "date"),
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        ["int", "long"],
    )
    assert found == (
        "struct<f0:bigint,f1:string,f2:array<double>,f3:map<string,timestamp>,f4:date,"
        "f5:decimal(9,2),f6:bigint>"
    )


def test_arrow_columns_are_exactly_those_that_spark_asks_for() -> None:
    kinds = [
        {"type": "array", "items": ["null", POINT]},
        {"type": "map", "values": {"type": "array", "items": logical("long", "time-micros")}},
        logical("long", "timestamp-millis"),
        logical("long", "local-timestamp-millis"),
        ["null", "int", "string"],
        {"type": "fixed", "name": "Hash", "size": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    ]
    kind = record_type(json.dumps(record(*kinds)))
    assert kind.arrow == to_arrow_type(kind.spark, timezone="UTC")
    assert decoder(kind)(pa.array([b"\2"], pa.binary())).type == kind.arrow


def test_a_named_type_may_be_used_again() -> None:
    again = {"type": "array", "items": "Point"}
    assert columns(POINT, again) == "struct<f0:struct<x:int>,f1:array<struct<x:int>>>"


def test_a_logical_type_that_avro_ignores_is_its_underlying_type() -> None:
    text = {"type": "string", "logicalType": "decimal", "precision": 4}
    fixed = {"type": "fixed", "name": "two", "size": 2, "logicalType": "decimal"}
    assert columns(text, logical("bytes", "decimal"), fixed, logical("long", "date")) == (
        "struct<f0:string,f1:binary,f2:binary,f3:bigint>"
    )


def test_a_type_named_in_a_union_may_be_used_again() -> None:
    color = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
    schema = {**record([color, "string"], "Color"), "name": "Row"}  # without a namespace
    row = {"f0": "BLUE", "f1": "RED"}
    found = {"f0": {"member0": "BLUE", "member1": None}, "f1": "RED"}
    assert decoded(schema, encoded(schema, row)) == [found]


def test_a_union_has_a_member_for_each_branch() -> None:
    schema = record(["null", "string", POINT, "int"])
    values = [encoded(schema, {"f0": each}) for each in (None, "a", {"x": 1}, 7)]
    assert [row["f0"] for row in decoded(schema, *values)] == [
        None,
        {"member0": "a", "member1": None, "member2": None},
        {"member0": None, "member1": {"x": 1}, "member2": None},
        {"member0": None, "member1": None, "member2": 7},
    ]


def test_only_a_value_that_cannot_be_read_is_null() -> None:
    schema = record("int", logical("long", "timestamp-millis"))
    numbers = record("long", "long")
    good, large, far = (
        encoded(numbers, {"f0": id_, "f1": at}) for id_, at in ((1, 0), (1 << 40, 0), (1, 1 << 62))
    )
    found = decoded(schema, good, None, large, far, good[:-1], good + b"\0", b"", good)
    assert [row and row["f0"] for row in found] == [1, None, None, None, None, None, None, 1]


def test_an_error_about_a_type_without_column_names_the_field() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": "Node"}]}
    with pytest.raises(ConfigError, match=r"shop.Row.f0.next: shop.Node contains itself"):
        columns(node)
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}
    with pytest.raises(ConfigError, match=r"shop.Row.f0: a decimal of 40 digits"):
        columns(wide)
    with pytest.raises(ConfigError, match="without fields"):
        columns({"type": "record", "name": "Empty", "fields": []})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("id int, name string", "needs JSON, or the name of a file .avsc"),
        ('"string"', "needs a record"),
        ("[]", "needs a record"),
        ("7", "not an Avro schema"),
        ('{"type": "record", "fields": []}', "not an Avro schema"),
        (
            '{"type": "record", "name": "a", "fields": [{"name": "b", "type": "c"}]}',
            "type c is not defined",
        ),
    ],
)
def test_a_text_that_is_not_a_schema_is_an_error(schema: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        record_type(schema)


def test_a_schema_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "row.avsc").write_text(json.dumps(POINT))
    assert json.loads(schema_text("row.avsc", tmp_path)) == POINT
    assert schema_text("{}", tmp_path) == "{}"
    with pytest.raises(ConfigError, match=r"other.avsc: No such file"):
        schema_text("other.avsc", tmp_path)


def test_the_source_reads_avro_and_leaves_the_rest_to_spark() -> None:
    assert read_value(Options({})) is None
    in_capitals = Options({"valueformat": "Avro", "valueschema": "{}"})
    assert read_value(in_capitals) == ValueSettings("avro", "{}")
    for options, said in (
        ({"valueFormat": "json"}, "use Spark's from_json"),
        ({"valueFormat": "avro"}, "option valueSchema is missing"),
        ({"valueSchema": "{}"}, "valueSchema needs option valueFormat"),
    ):
        with pytest.raises(ConfigError, match=said):
            read_value(Options(options))
    given = {"valueFormat": "avro", "valueSchema": json.dumps(POINT), "includeHeaders": "true"}
    assert PenstockSource(given).schema().endswith("fields struct<x:int>")
