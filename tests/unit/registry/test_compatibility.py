"""Tables of schema changes: can a new schema read old data (backward), and old ones new data
(forward)?
"""

import json
from typing import Any

import pytest

from penstock.registry.compatibility import LEVELS, compared, incompatibilities
from penstock.registry.errors import invalid_schema
from penstock.registry.parsing import parsed
from penstock.registry.schema import Schema, SchemaType
from penstock.registry.state import Version

BOTH, BACKWARD, FORWARD, NEITHER = (True, True), (True, False), (False, True), (False, False)


def directions(kind: SchemaType, old: str, new: str) -> tuple[bool, bool]:
    before, after = parsed(kind, old, []), parsed(kind, new, [])
    return not after.cannot_read(before), not before.cannot_read(after)


def fields(*each: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": list(each)}


X = {"name": "x", "type": "int"}
Y = {"name": "y", "type": "string"}
Y_DEFAULT = {**Y, "default": ""}
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}

AVRO = {
    "the same": (fields(X), fields(X), BOTH),
    "a field with a default is added": (fields(X), fields(X, Y_DEFAULT), BOTH),
    "a field without a default is added": (fields(X), fields(X, Y), FORWARD),
    "a field without a default is removed": (fields(X, Y), fields(X), BACKWARD),
    "a field is renamed": (fields(X), fields({**X, "name": "z"}), NEITHER),
    "a field is renamed with an alias": (
        fields(X),
        fields({"name": "z", "type": "int", "aliases": ["x"]}),
        BACKWARD,
    ),
    "int becomes long": ("int", "long", BACKWARD),
    "long becomes float": ("long", "float", BACKWARD),
    "double becomes float": ("double", "float", FORWARD),
    "string becomes bytes": ("string", "bytes", BOTH),
    "string becomes int": ("string", "int", NEITHER),
    "a type becomes nullable": ("int", ["null", "int"], BACKWARD),
    "a union gets a branch": (["int", "string"], ["int", "string", "null"], BACKWARD),
    "a symbol is added": (ENUM, {**ENUM, "symbols": ["A", "B", "C"]}, BACKWARD),
    "a symbol is removed, with a default": (
        ENUM,
        {**ENUM, "symbols": ["A"], "default": "A"},
        BOTH,
    ),
    "a fixed grows": (
        {"type": "fixed", "name": "f", "size": 4},
        {"type": "fixed", "name": "f", "size": 8},
        NEITHER,
    ),
    "a record gets another name": (fields(X), {**fields(X), "name": "s"}, NEITHER),
    "array items widen": (
        {"type": "array", "items": "int"},
        {"type": "array", "items": "long"},
        BACKWARD,
    ),
    "map values narrow": (
        {"type": "map", "values": "long"},
        {"type": "map", "values": "int"},
        FORWARD,
    ),
    "a schema that contains itself": (
        fields({"name": "next", "type": ["null", "r"], "default": None}),
        fields({"name": "next", "type": ["null", "r"], "default": None}, Y_DEFAULT),
        BOTH,
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), AVRO.values(), ids=AVRO)
def test_changes_of_avro_schemas_are_judged(
    old: Any, new: Any, expected: tuple[bool, bool]
) -> None:
    assert directions(SchemaType.AVRO, json.dumps(old), json.dumps(new)) == expected


def proto(body: str, head: str = "") -> str:
    return f'syntax = "proto3"; {head} message M {{ {body} }}'


PROTOBUF = {
    "the same": (proto("int32 a = 1;"), proto("int32 a = 1;"), BOTH),
    "a field is added": (proto("int32 a = 1;"), proto("int32 a = 1; string b = 2;"), BOTH),
    "a field is renamed": (proto("int32 a = 1;"), proto("int32 z = 1;"), BOTH),
    "a field gets another number": (proto("int32 a = 1;"), proto("int32 a = 2;"), BOTH),
    "int32 becomes int64": (proto("int32 a = 1;"), proto("int64 a = 1;"), BOTH),
    "int32 becomes sint32": (proto("int32 a = 1;"), proto("sint32 a = 1;"), NEITHER),
    "int32 becomes string": (proto("int32 a = 1;"), proto("string a = 1;"), NEITHER),
    "string becomes bytes": (proto("string a = 1;"), proto("bytes a = 1;"), BOTH),
    "a number becomes repeated": (proto("int32 a = 1;"), proto("repeated int32 a = 1;"), NEITHER),
    "a string becomes repeated": (proto("string a = 1;"), proto("repeated string a = 1;"), BOTH),
    "the package changes": (
        proto("N n = 1; message N {}", "package a;"),
        proto("N n = 1; message N {}", "package b;"),
        BOTH,
    ),
    "a message is removed": (
        proto("int32 a = 1;") + " message N {}",
        proto("int32 a = 1;"),
        FORWARD,
    ),
    "a field has another message": (
        proto("N n = 1; message N {} message O {}"),
        proto("O n = 1; message N {} message O {}"),
        NEITHER,
    ),
    "a field moves into a new oneof": (
        proto("int32 a = 1;"),
        proto("oneof o { int32 a = 1; int32 b = 2; }"),
        BOTH,
    ),
    "two fields move into a oneof": (
        proto("int32 a = 1; int32 b = 2;"),
        proto("oneof o { int32 a = 1; int32 b = 2; }"),
        FORWARD,
    ),
    "a field of a oneof is removed": (
        proto("oneof o { int32 a = 1; int32 b = 2; }"),
        proto("oneof o { int32 a = 1; }"),
        FORWARD,
    ),
    "a map's values change": (
        proto("map<string, int32> m = 1;"),
        proto("map<string, string> m = 1;"),
        NEITHER,
    ),
    "a map's field has another name": (
        proto("map<string, int32> m = 1;"),
        proto("map<string, int32> n = 1;"),
        BOTH,
    ),
    "a map's field has another name and type": (
        proto("map<string, int32> m = 1;"),
        proto("map<string, string> n = 1;"),
        NEITHER,
    ),
    "a map goes, and another of its name comes": (
        proto("map<string, int32> m = 1;"),
        proto("map<string, string> m = 2;"),
        BOTH,
    ),
    "an enum has another name": (
        proto("E e = 1; enum E { A = 0; }"),
        proto("F e = 1; enum F { A = 0; }"),
        BOTH,
    ),
    "an enum becomes a number": (
        proto("E e = 1; enum E { A = 0; }"),
        proto("int32 e = 1; enum E { A = 0; }"),
        BOTH,
    ),
    "a required field is added": (
        'syntax = "proto2"; message M { optional int32 a = 1; }',
        'syntax = "proto2"; message M { optional int32 a = 1; required int32 b = 2; }',
        NEITHER,
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), PROTOBUF.values(), ids=PROTOBUF)
def test_changes_of_protobuf_schemas_are_judged(
    old: str, new: str, expected: tuple[bool, bool]
) -> None:
    assert directions(SchemaType.PROTOBUF, old, new) == expected


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def opened(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


INT, TEXT = {"type": "integer"}, {"type": "string"}
DATED = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
JSON = {
    "true is not 1": ({"enum": [True, [True]]}, {"enum": [1, [1]]}, NEITHER),
    "1.0 is 1": ({"enum": [1]}, {"enum": [1.0]}, BOTH),
    "more of what it contains": (
        {"type": "array", "contains": {"type": "string"}},
        {"type": "array", "contains": {"type": "string"}, "minContains": 2},
        FORWARD,
    ),
    "the same": (closed({"a": INT}), closed({"a": INT}), BOTH),
    "a property is added to a closed model": (
        closed({"a": INT}),
        closed({"a": INT, "b": TEXT}),
        BACKWARD,
    ),
    "a property is added to an open model": (
        opened({"a": INT}),
        opened({"a": INT, "b": TEXT}),
        FORWARD,
    ),
    "a property of any type is added to an open model": (
        opened({"a": INT}),
        opened({"a": INT, "b": {}}),
        BOTH,
    ),
    "a property is added that fits a partially open model": (
        opened({}, additionalProperties=TEXT),
        opened({"b": TEXT}, additionalProperties=TEXT),
        BOTH,
    ),
    "a property is added that does not fit it": (
        opened({}, additionalProperties=TEXT),
        opened({"b": INT}, additionalProperties=TEXT),
        NEITHER,
    ),
    "a required property is added": (
        closed({"a": INT}),
        closed({"a": INT, "b": TEXT}, required=["b"]),
        NEITHER,
    ),
    "a required property with a default is added": (
        closed({"a": INT}),
        closed({"a": INT, "b": {**TEXT, "default": ""}}, required=["b"]),
        BACKWARD,
    ),
    "a property becomes optional": (
        closed({"a": INT}, required=["a"]),
        closed({"a": INT}),
        BACKWARD,
    ),
    "a model is opened": (closed({"a": INT}), opened({"a": INT}), BACKWARD),
    "integer becomes number": (INT, {"type": "number"}, BACKWARD),
    "a type is added": (INT, {"type": ["integer", "null"]}, BACKWARD),
    "another type": (INT, TEXT, NEITHER),
    "any type": (INT, {}, BACKWARD),
    "nothing": (INT, False, FORWARD),
    "a longer string": ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 9}, BACKWARD),
    "a shortest string": (TEXT, {**TEXT, "minLength": 1}, FORWARD),
    "a string of any length": (TEXT, {**TEXT, "minLength": 0}, BOTH),
    "a minimum of zero": (INT, {**INT, "minimum": 0}, FORWARD),
    "a minimum raised to zero": ({**INT, "minimum": -5}, {**INT, "minimum": 0}, FORWARD),
    "a pattern is changed": ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, NEITHER),
    "a maximum is removed": ({**INT, "maximum": 9}, INT, BACKWARD),
    "an exclusive minimum is raised": (
        {**INT, "exclusiveMinimum": 1},
        {**INT, "exclusiveMinimum": 2},
        FORWARD,
    ),
    "a multiple is refined": ({**INT, "multipleOf": 10}, {**INT, "multipleOf": 5}, BACKWARD),
    "an enum is extended": ({"enum": ["a"]}, {"enum": ["a", "b"]}, BACKWARD),
    "an enum becomes a string": ({"enum": ["a"]}, TEXT, BACKWARD),
    "const becomes enum": ({"const": 1}, {"enum": [1, 2]}, BACKWARD),
    "items widen": (
        {"type": "array", "items": INT},
        {"type": "array", "items": {"type": "number"}},
        BACKWARD,
    ),
    "unique items": ({"type": "array"}, {"type": "array", "uniqueItems": True}, FORWARD),
    "a tuple's item changes": (
        {"type": "array", "items": [INT, TEXT]},
        {"type": "array", "items": [INT, INT]},
        NEITHER,
    ),
    "an alternative is added": ({"oneOf": [INT]}, {"oneOf": [INT, TEXT]}, BACKWARD),
    "a type becomes one of two": (INT, {"anyOf": [TEXT, INT]}, BACKWARD),
    "alternatives change": ({"oneOf": [INT]}, {"oneOf": [TEXT]}, NEITHER),
    "a condition is added": (
        {"allOf": [INT]},
        {"allOf": [INT, {"maximum": 3}]},
        FORWARD,
    ),
    "not is changed": ({"not": INT}, {"not": TEXT}, NEITHER),
    "a description": (INT, {**INT, "description": "d", "title": "t"}, BOTH),
    "behind references": (
        {"$ref": "#/definitions/a", "definitions": {"a": INT}},
        {"$ref": "#/$defs/b", "$defs": {"b": {"type": "number"}}},
        BACKWARD,
    ),
    "a bound beside a reference": (
        {**DATED, "$ref": "#/$defs/a", "$defs": {"a": INT}},
        {**DATED, "$ref": "#/$defs/a", "$defs": {"a": INT}, "maximum": 9},
        FORWARD,
    ),
    "a narrower bound beside a reference": (
        {**DATED, "$ref": "#/$defs/a", "$defs": {"a": {**INT, "maximum": 9}}},
        {**DATED, "$ref": "#/$defs/a", "$defs": {"a": {**INT, "maximum": 9}}, "maximum": 5},
        FORWARD,
    ),
    "a bound beside a reference of draft 7": (
        {"$ref": "#/definitions/a", "definitions": {"a": INT}},
        {"$ref": "#/definitions/a", "definitions": {"a": INT}, "maximum": 9},
        BOTH,
    ),
    "a schema that contains itself, with more beside": (
        {**DATED, **closed({"next": {"$ref": "#", "minProperties": 1}, "v": INT})},
        {**DATED, **closed({"next": {"$ref": "#", "minProperties": 1}, "v": {"type": "number"}})},
        BACKWARD,
    ),
    "a schema that contains itself": (
        closed({"next": {"$ref": "#"}, "v": INT}),
        closed({"next": {"$ref": "#"}, "v": {"type": "number"}}),
        BACKWARD,
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), JSON.values(), ids=JSON)
def test_changes_of_json_schemas_are_judged(
    old: Any, new: Any, expected: tuple[bool, bool]
) -> None:
    assert directions(SchemaType.JSON, json.dumps(old), json.dumps(new)) == expected


ZIP = {"type": "object", "properties": {"zip": {"$ref": "#/definitions/zip"}}}
REFERRING = {
    SchemaType.AVRO: (
        json.dumps(fields({"name": "p", "type": "part"})),
        ("part", '{"type": "record", "name": "part", "fields": [{"name": "a", "type": "%s"}]}'),
        ("int", "long"),
    ),
    SchemaType.JSON: (
        json.dumps({**closed({"p": {"$ref": "part"}}), "definitions": {"zip": TEXT}}),
        ("part", json.dumps({**ZIP, "definitions": {"zip": {"type": "%s"}}})),
        ("integer", "number"),
    ),
    SchemaType.PROTOBUF: (
        'syntax = "proto3"; import "part"; message M { p.Part p = 1; }',
        ("part", 'syntax = "proto3"; package p; message Part { %s a = 1; Part next = 2; }'),
        ("int32", "bytes"),
    ),
}
"""A schema, another one that it refers to, and two types for a field there."""


@pytest.mark.parametrize("kind", REFERRING)
def test_a_change_in_a_referenced_schema_counts(kind: SchemaType) -> None:
    text, (name, part), (small, large) = REFERRING[kind]
    before, after = (parsed(kind, text, [(name, part % each)]) for each in (small, large))
    assert not before.cannot_read(before)
    assert before.cannot_read(after)


@pytest.mark.parametrize("draft", ["4/schema#", "7/schema#"])
def test_long_enums_are_compared_quickly(draft: str) -> None:
    """Comparing each value with each other would take minutes and block all other requests."""
    named = {"$schema": f"http://json-schema.org/draft-0{draft}"}
    values = [each if each % 2 else str(each) for each in range(20_000)]
    old, new = ({**named, "enum": values[:most]} for most in (-1, None))
    assert directions(SchemaType.JSON, json.dumps(old), json.dumps(new)) == BACKWARD


def version(number: int, *each: Any) -> Version:
    return Version("s", number, number, Schema(json.dumps(fields(*each))), deleted=False, value={})


def parse(schema: Schema) -> Any:
    return parsed(schema.type, schema.text, [])


VERSIONS = [version(1, X, Y), version(2, X)]
"""Version 1 had the field y without a default; version 2 has not."""
NEXT = {
    "reads all": Schema(json.dumps(fields(X))),
    "reads the latest only": Schema(json.dumps(fields(X, {**Y, "type": "int", "default": 0}))),
    "is read by the latest only": Schema(json.dumps(fields(X, {"name": "z", "type": "int"}))),
}
ALLOWED = {
    "NONE": {"reads all", "reads the latest only", "is read by the latest only"},
    "BACKWARD": {"reads all", "reads the latest only"},
    "BACKWARD_TRANSITIVE": {"reads all"},
    "FORWARD": {"reads all", "reads the latest only", "is read by the latest only"},
    "FORWARD_TRANSITIVE": set(),
    "FULL": {"reads all", "reads the latest only"},
    "FULL_TRANSITIVE": set(),
}


@pytest.mark.row("A020")
@pytest.mark.parametrize("level", LEVELS)
def test_each_level_compares_in_its_direction_with_its_versions(level: str) -> None:
    allowed = {
        name
        for name, schema in NEXT.items()
        if not incompatibilities(level, schema, parse(schema), compared(level, VERSIONS), parse)
    }
    assert allowed == ALLOWED[level]


def doubling(depth: int, leaf: str) -> str:
    """A short schema whose alternatives refer to alternatives: each level multiplies the work."""
    levels: dict[str, Any] = {"0": {"type": leaf}}
    for level in range(depth):
        items = {"type": "array", "items": {"$ref": f"#/definitions/{level}"}}
        levels[str(level + 1)] = {"anyOf": [{**items, "maxItems": each} for each in (1, 2, 3)]}
    return json.dumps({"$ref": f"#/definitions/{depth}", "definitions": levels})


def test_schemas_too_costly_to_compare_are_incompatible() -> None:
    old = Schema(doubling(12, "integer"), SchemaType.JSON)
    new = Schema(doubling(12, "string"), SchemaType.JSON)
    earlier = [Version("s", 1, 1, old, deleted=False, value={})]
    (reason, *_) = incompatibilities("FULL", new, parse(new), earlier, parse)
    assert "cannot be compared" in reason


def test_no_schema_is_compatible_with_an_earlier_one_that_cannot_be_parsed() -> None:
    """Another registry accepted it."""

    def refuse(_: Schema) -> Any:
        raise invalid_schema("an unknown import")

    new = NEXT["reads all"]
    (reason, *_) = incompatibilities("BACKWARD", new, parse(new), VERSIONS, refuse)
    assert reason.endswith("an unknown import")
    assert not incompatibilities("NONE", new, parse(new), VERSIONS, refuse)


def test_a_subject_keeps_its_type() -> None:
    schema = Schema('{"type":"object"}', SchemaType.JSON)
    assert incompatibilities("BACKWARD", schema, parse(schema), VERSIONS, parse)
    assert not incompatibilities("NONE", schema, parse(schema), VERSIONS, parse)
