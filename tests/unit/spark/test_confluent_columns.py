"""The columns of subjects whose schemas have changed."""

import json
import math
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import UninterpretedOption
from google.protobuf.struct_pb2 import Struct

from penstock.errors import ConfigError
from penstock.spark.avro.schema import record_type
from penstock.spark.avro.values import built
from penstock.spark.confluent.encode import avro_writer, json_writer, protobuf_writer
from penstock.spark.confluent.json_columns import json_columns
from penstock.spark.confluent.merged import defaults, expanded, merged
from penstock.spark.data_source import PenstockSource
from penstock.spark.options import Options
from penstock.spark.source.settings import read_value, subject_of


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def columns(node: Any) -> str:
    return str(record_type(json.dumps(node)).spark.simpleString())


def test_columns_of_all_versions_are_merged_newest_first() -> None:
    old = record(a="int", gone="string", line=record(x="int"))
    new = record(a="long", line=record(x="double", y="string"), added="boolean")
    nodes = [expanded(each, {}) for each in (new, old)]
    assert columns(merged(nodes)) == (
        "struct<a:bigint,line:struct<x:double,y:string>,added:boolean,gone:string>"
    )


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (["null", "int"], "int", "int"),
        ("int", ["null", "long"], "bigint"),
        ("float", "int", "double"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, "array<bigint>"),
        (
            {"type": "enum", "name": "e", "symbols": ["A"]},
            {"type": "enum", "name": "e", "symbols": ["B"]},
            "string",
        ),
    ],
)
def test_compatible_types_share_a_column(new: Any, old: Any, expected: str) -> None:
    nodes = [expanded(record(f=each), {}) for each in (new, old)]
    assert columns(merged(nodes)) == f"struct<f:{expected}>"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("string", "int"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long"),
        (["int", "string"], ["string", "int"]),
        (record(x="int"), "int"),
    ],
)
def test_incompatible_types_cannot_share_a_column(new: Any, old: Any) -> None:
    nodes = [expanded(record(f=each), {}) for each in (new, old)]
    with pytest.raises(ConfigError, match="f has types that cannot form one column"):
        merged(nodes)


def test_named_types_are_expanded_in_place() -> None:
    inner = {"type": "record", "name": "In", "namespace": "a", "fields": record(x="int")["fields"]}
    node = {**record(one=inner, two="a.In", three=["null", "b.Far"]), "namespace": "a"}
    far = {"type": "enum", "name": "Far", "namespace": "b", "symbols": ["A"]}
    found = expanded(node, {"b.Far": far})
    assert columns(found) == "struct<one:struct<x:int>,two:struct<x:int>,three:string>"
    with pytest.raises(ConfigError, match="contains itself"):
        expanded(record(next=["null", "r"]), {})


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("string", "x", "x"),
        (["int", "null"], 0, 0),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "A", "A"),
        ({"type": "array", "items": "int"}, [], []),
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "int", "logicalType": "date"}, 7, 7),
        ([{"type": "long", "logicalType": "timestamp-millis"}, "null"], 7, 7),
        (["null", "int"], None, None),
        (["int", "string"], 5, None),
        ([{"type": "array", "items": "int"}, "string"], [], None),
        ([{"type": "bytes", "logicalType": "decimal", "precision": 4}, "null"], "\u0001", None),
    ],
)
def test_a_field_missing_in_an_old_value_has_its_default(
    kind: Any, default: Any, expected: Any
) -> None:
    node = record(a="int", b=kind)
    node["fields"][1]["default"] = default
    found = defaults(node)
    assert found.get("b") == expected
    column = built([{"a": 1, **found}], record_type(json.dumps(node)))
    assert column.null_count == 0, "a value without the field is read"


def test_a_json_schema_becomes_columns() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["null", "string"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "line": {"$ref": "#/definitions/line"},
            "counts": {"type": "object", "additionalProperties": {"type": "number"}},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "definitions": {"line": {"type": "object", "properties": {"x": {"type": "boolean"}}}},
    }
    assert columns(json_columns(schema)) == (
        "struct<id:bigint,name:string,tags:array<string>,line:struct<x:boolean>,"
        "counts:map<string,double>>"
    )
    for broken in (True, {"type": "string"}, {"type": "object"}):
        with pytest.raises(ConfigError, match="object with properties"):
            json_columns(broken)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"a": 1, "lost": "x"}, "more fields than the schema specifies: lost"),
        ({"a": 1.5}, "a is <1.5>"),
        ({"a": 1 << 40}, "a is <1099511627776>"),
        ({"a": None}, "a. is None"),
        ({"b": 1}, "a. is None"),
    ],
)
def test_a_row_that_avro_would_truncate_is_refused(row: dict[str, Any], reason: str) -> None:
    write_avro = avro_writer(record(a="int"))
    assert write_avro({"a": 1}) == b"\x02"
    with pytest.raises(ValueError, match=reason):
        write_avro(row)


def test_times_without_a_zone_are_written_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}}
    write_avro = avro_writer(record(a=kind))
    noon = datetime(2026, 1, 1, 12)  # noqa: DTZ001
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert write_avro({"a": [noon]}) == write_avro({"a": [noon.replace(tzinfo=UTC)]})
    finally:
        monkeypatch.undo()
        time.tzset()


def test_json_refuses_nan_and_infinity() -> None:
    assert json_writer({"a": 1.5, "b": [None], "c": None}) == b'{"a":1.5,"b":[null]}'
    for wrong in (math.nan, -math.inf):
        with pytest.raises(ValueError, match="JSON has no number"):
            json_writer({"a": {"b": [wrong]}})


def test_protobuf_accepts_every_double() -> None:
    for each in (math.nan, math.inf, -math.inf, 1.5):
        written = protobuf_writer(UninterpretedOption)({"double_value": each})
        found = UninterpretedOption.FromString(written[1:]).double_value
        assert str(found) == str(each)


def test_maps_of_protobuf_have_a_fixed_order() -> None:
    names = [f"k{number:02}" for number in range(20)]
    written = protobuf_writer(Struct)(dict.fromkeys(reversed(names), True))
    assert sorted(names, key=lambda each: written.index(each.encode())) == names


def test_nested_types_get_distinct_names() -> None:
    text = {"type": "object", "properties": {"c": {"type": "string"}}}
    properties = {"a": {"type": "object", "properties": {"b": text}}, "a_b": text}
    expected = "struct<a:struct<b:struct<c:string>>,a_b:struct<c:string>>"
    assert columns(json_columns({"properties": properties})) == expected
    inner = {**record(c="string"), "name": "In"}
    node = record(a={**record(b=inner), "name": "A"}, a_b="In")
    assert columns(expanded(node, {})) == expected


def test_names_that_ddl_does_not_accept_are_quoted() -> None:
    fields = record(**{"first-name": "string", "lines": {"type": "array", "items": "int"}})
    fields["fields"].append({"name": "in", "type": {**record(**{"a`b": "int"}), "name": "in"}})
    options = {
        "subscribe": "t",
        "valueFormat": "confluent-json",
        "valueSchema": json.dumps(fields),
        "schema.registry.url": "http://h:1",
    }
    assert (
        PenstockSource(options)
        .schema()
        .endswith("fields struct<`first-name`:string,lines:array<int>,in:struct<`a``b`:int>>")
    )


def test_options_of_a_registry_are_read() -> None:
    confluent = {"valueFormat": "confluent-avro", "schema.registry.url": "http://r:8081"}
    assert subject_of(Options({**confluent, "subscribe": "orders"})) == "orders-value"
    assert subject_of(Options({**confluent, "valueSubject": "s"})) == "s"
    assert subject_of(Options({**confluent, "valueSchema": "{}"})) is None
    assert subject_of(Options({"valueFormat": "avro"})) is None
    for wrong, message in (
        ({**confluent, "subscribe": "a,b"}, "valueSubject is needed"),
        ({"valueFormat": "avro", "schema.registry.url": "x"}, "is for the formats"),
        ({"valueFormat": "confluent-avro", "valueSchema": "{}"}, "schema.registry.url"),
        ({"schema.registry.url": "x"}, "needs option valueFormat"),
    ):
        options = Options(wrong)
        with pytest.raises(ConfigError, match=message):
            _ = subject_of(options), read_value(options)
