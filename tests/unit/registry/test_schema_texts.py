"""Equivalent texts are stored as one; broken ones are refused with a reason."""

import json

import pytest

from penstock.registry.formats.parsed import BrokenSchema
from penstock.registry.parsing import parsed
from penstock.registry.schema import SchemaType

AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF

# The output of Java's Schema.toString().
JAVA = {
    '{"type": "string"}': '"string"',
    '{"avro.java.string":"String","type":"string"}': (
        '{"type":"string","avro.java.string":"String"}'
    ),
    '{"type":"long","logicalType":"timestamp-millis"}': (
        '{"type":"long","logicalType":"timestamp-millis"}'
    ),
    '{"fields":[{"type":"int","name":"x","doc":"d","default":1,"order":"ascending"}],'
    '"name":"a.b.C","doc":"of C","type":"record","p":1,"aliases":["D"]}': (
        '{"type":"record","name":"C","namespace":"a.b","doc":"of C","fields":'
        '[{"name":"x","type":"int","doc":"d","default":1}],"p":1,"aliases":["D"]}'
    ),
    '{"type":"record","name":"C","namespace":"a","fields":['
    '{"name":"e","type":{"type":"enum","name":"E","namespace":"a","symbols":["X"]}},'
    '{"name":"f","type":["null","a.E"],"default":null},'
    '{"name":"g","type":{"type":"fixed","size":2,"name":"b.F"}}]}': (
        '{"type":"record","name":"C","namespace":"a","fields":['
        '{"name":"e","type":{"type":"enum","name":"E","symbols":["X"]}},'
        '{"name":"f","type":["null","E"],"default":null},'
        '{"name":"g","type":{"type":"fixed","name":"F","namespace":"b","size":2}}]}'
    ),
    '{"type":"array","items":{"type":"map","values":{"type":"int"}}}': (
        '{"type":"array","items":{"type":"map","values":"int"}}'
    ),
}


@pytest.mark.parametrize(("given", "expected"), JAVA.items())
def test_avro_is_stored_as_java_prints_it(given: str, expected: str) -> None:
    assert parsed(AVRO, given, []).canonical == expected
    assert parsed(AVRO, expected, []).canonical == expected


def test_normalized_texts_ignore_the_order_of_properties() -> None:
    one, other = '{"type":"int","b":1,"a":2}', '{"a":2,"type":"int","b":1}'
    assert parsed(AVRO, one, []).canonical != parsed(AVRO, other, []).canonical
    assert parsed(AVRO, one, []).normalized() == parsed(AVRO, other, []).normalized()
    one, other = '{"type":"string","maxLength":1}', '{ "maxLength":1,"type":"string"}'
    assert parsed(JSON, one, []).canonical != parsed(JSON, other, []).canonical
    assert parsed(JSON, one, []).normalized() == parsed(JSON, other, []).normalized()


PROTO = """\
syntax = "proto3";
package com.acme;

import "google/protobuf/timestamp.proto";

option java_package = "com.acme.events";

message Order {
  reserved 20 to 30, 40 to max;
  reserved "old";
  int32 id = 1;
  map<string, Order.Line> lines = 2;
  oneof paid {
    string card = 3;
    bytes cheque = 4;
  }
  optional int64 total = 5 [deprecated = true];
  google.protobuf.Timestamp at = 6;
  Order.State state = 7 [json_name = "status"];

  message Line {
    repeated sint32 counts = 1 [packed = false];
  }

  enum State {
    NEW = 0;
    DONE = 1;
  }
}

service Orders {
  rpc Follow (Order) returns (stream Order);
}
"""


def test_protobuf_texts_are_stored_in_one_style() -> None:
    loose = PROTO.replace("\n", " \n ").replace("{", "{ // said\n").replace("Order.Line>", "Line>")
    for given in (PROTO, loose):
        assert parsed(PROTOBUF, given, []).canonical == PROTO


def test_a_protobuf_descriptor_in_base64_is_the_same_schema() -> None:
    found = parsed(PROTOBUF, PROTO, [])
    packed = found.formatted("serialized")
    assert packed is not None
    assert parsed(PROTOBUF, packed, []).canonical == PROTO
    assert found.formatted("nonsense") is None


@pytest.mark.parametrize(
    "text",
    [
        'edition = "2023"; message M { int32 a = 1; }',
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 2; } }',
        (
            'syntax = "proto2"; import "google/protobuf/descriptor.proto"; '
            "extend google.protobuf.FieldOptions { optional int32 own = 50000; } "
            "message M { optional int32 a = 1 [(own) = 7]; }"
        ),
    ],
)
def test_a_text_without_a_canonical_form_is_stored_as_given(text: str) -> None:
    assert parsed(PROTOBUF, text, []).canonical == text


def test_proto2_with_defaults_and_extensions_is_supported() -> None:
    text = (
        'syntax = "proto2";\n\nmessage M {\n  required string s = 1 [default = "a\\"b"];\n'
        "  optional int32 n = 2 [default = -1];\n  extensions 100 to max;\n}\n\n"
        "extend M {\n  optional int32 x = 100;\n}\n"
    )
    assert parsed(PROTOBUF, text, []).canonical == text


def test_references_are_found_by_their_names() -> None:
    inner = 'syntax = "proto3"; package i; message In { int32 a = 1; }'
    outer = 'syntax = "proto3"; import "dir/in.proto"; message Out { i.In in = 1; }'
    assert "i.In in = 1;" in parsed(PROTOBUF, outer, [("dir/in.proto", inner)]).canonical
    with pytest.raises(BrokenSchema, match=r"in\.proto"):
        parsed(PROTOBUF, outer, [])
    with pytest.raises(BrokenSchema, match="not that of a"):
        parsed(PROTOBUF, outer, [("../in.proto", inner)])
    schema = json.dumps({"type": "object", "properties": {"a": {"$ref": "in.json"}}})
    parsed(JSON, schema, [("in.json", '{"type":"integer"}')])
    with pytest.raises(BrokenSchema, match=r"in\.json"):
        parsed(JSON, schema, [])


def test_a_ref_inside_data_is_not_a_reference() -> None:
    inner = json.dumps(
        {"properties": {"a": {"const": {"$ref": "#"}, "enum": [{"$ref": "#"}]}}, "title": "in"}
    )
    outer = {"properties": {"p": {"$ref": "in.json"}}, "default": {"$ref": "nowhere"}}
    same = {"properties": {"p": {"properties": {"a": {"const": {"$ref": "#"}}}}}}
    reader = parsed(JSON, json.dumps(outer), [("in.json", inner)])
    written = parsed(JSON, json.dumps(same), [])
    assert reader.cannot_read(written) == [], "the constant is as it was written"


@pytest.mark.parametrize("name", ["const", "default", "enum", "examples"])
def test_a_property_may_have_the_name_of_a_keyword(name: str) -> None:
    schema = json.dumps({"type": "object", "properties": {name: {"$ref": "in.json"}}})
    parsed(JSON, schema, [("in.json", '{"type":"integer"}')])
    with pytest.raises(BrokenSchema, match=r"in\.json"):
        parsed(JSON, schema, [])
    inner = json.dumps({"properties": {name: {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}})
    whole = parsed(JSON, schema, [("in.json", inner)])
    assert whole.cannot_read(whole) == []


def test_ids_and_anchors_that_are_objects_are_ignored() -> None:
    """Draft 4 has no `$id`, and a property may have that name."""
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    inner = {
        **draft,
        "$id": {"a": 1},
        "properties": {"$anchor": {}, "$id": {}, "self": {"$ref": "#"}},
    }
    outer = json.dumps({"properties": {"p": {"$ref": "in.json"}}})
    whole = parsed(JSON, outer, [("in.json", json.dumps(inner))])
    assert whole.cannot_read(whole) == []
    with pytest.raises(BrokenSchema, match="leads nowhere"):
        parsed(JSON, json.dumps({**inner, "$ref": "#there"}), [])
    own = {**draft, "id": "http://a/b", "properties": {"p": {"$ref": "http://a/b#"}}}
    parsed(JSON, json.dumps(own), [])


BROKEN = [
    (AVRO, "{", "not JSON"),
    (AVRO, '{"type":"strin"}', "strin"),
    (AVRO, '{"type":"record","name":"r"}', "field"),
    (AVRO, '{"type":"record","name":"r","fields":[{"name":"a"}]}', "type"),
    (AVRO, '{"type":"enum","name":"e","symbols":["A","A"]}', "symbol"),
    (AVRO, "[" * 5_000 + "]" * 5_000, "deeply"),
    (AVRO, "null", ""),
    (AVRO, "17", ""),
    (JSON, "{", "not JSON"),
    (JSON, "17", "object"),
    (JSON, '{"type":"record"}', "#/type"),
    (JSON, '{"$ref":"#/definitions/a"}', "leads nowhere"),
    (JSON, '{"minimum":NaN}', "NaN"),
    (JSON, '{"a":' * 5_000 + "1" + "}" * 5_000, "deeply"),
    (JSON, '{"minimum":1e999}', "number that JSON cannot have"),
    (JSON, '{"$schema":5}', "schema: it must be a text"),
    (AVRO, '{"type":"record","name":"r","fields":[],"p":1e999}', "number that JSON cannot have"),
    (PROTOBUF, "message {", "line 1"),
    (PROTOBUF, 'syntax = "proto3";\nmessage M { Missing m = 1; }', "line 2.*Missing"),
    (PROTOBUF, 'syntax = "proto3"; import "/etc/passwd"; message M {}', "passwd"),
    (PROTOBUF, "AAAA", "base64"),
]


@pytest.mark.parametrize(("kind", "text", "reason"), BROKEN)
def test_a_broken_schema_is_refused_with_a_reason(kind: SchemaType, text: str, reason: str) -> None:
    with pytest.raises(BrokenSchema, match=f"(?is){reason}"):
        parsed(kind, text, [])
