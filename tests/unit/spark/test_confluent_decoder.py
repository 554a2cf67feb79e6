"""When a value with a schema id is null, which must be final, and when the task fails instead."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer

from penstock.errors import ConfigError
from penstock.record_view.registry import RegisteredSchema, RegistryFailed, SchemaNotFound
from penstock.spark.avro.schema import record_type
from penstock.spark.avro.values import Decode
from penstock.spark.confluent import values
from penstock.spark.confluent.fit import fitting
from penstock.spark.confluent.values import ColumnsChanged, decoder, reader_schema

AVRO = "confluent-avro"


class Registry:
    """A fake registry: schemas by their ids, all of one subject unless foreign."""

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {}
        self.kind = "AVRO"
        self.lag = 0
        """The number of requests until an id is known."""
        self.asked = 0
        self.is_away = False
        self.foreign: set[int] = set()

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked += 1
        if self.is_away:
            raise RegistryFailed("the registry is away")
        if schema_id not in self.schemas or self.asked <= self.lag:
            raise SchemaNotFound("the registry has no such schema")
        return RegisteredSchema(self.schemas[schema_id], self.kind, id=schema_id)

    def versions(self, _subject: str) -> list[RegisteredSchema]:
        own = self.schemas.keys() - self.foreign
        return [self.by_id(each) for each in sorted(own, reverse=True)]

    def imported(self, _schema: RegisteredSchema) -> list[RegisteredSchema]:
        return []


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    found = Registry()
    monkeypatch.setattr(values, "registry_of", lambda _: found)
    monkeypatch.setattr(values, "ASK_AGAIN_S", 0)
    values._readers.cache_clear()
    yield found
    values._readers.cache_clear()


def record(**fields: Any) -> dict[str, Any]:
    named = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "r", "fields": named}


def avro(registry: Registry, schema_id: int, row: dict[str, Any], **fields: Any) -> bytes:
    registry.schemas[schema_id] = json.dumps(record(**fields))
    data = io.BytesIO()
    schemaless_writer(data, parse_schema(record(**fields)), row)
    return b"\0" + schema_id.to_bytes(4) + data.getvalue()


def read(decode: Decode, *found: bytes) -> list[Any]:
    return list(decode(pa.array(found, pa.binary())).to_pylist())


@pytest.mark.parametrize(("kind", "wide"), [("long", 1 << 40), ("double", 1.5)])
def test_a_value_that_only_later_columns_can_hold_fails_the_task(
    registry: Registry, kind: str, wide: Any
) -> None:
    old = avro(registry, 1, {"a": 1}, a="int")
    columns = reader_schema(AVRO, "u", "s")
    running = decoder(AVRO, columns, "u", "s")
    same, wider = avro(registry, 2, {"a": 7}, a=kind), avro(registry, 2, {"a": wide}, a=kind)
    assert read(running, old, same) == [{"a": 1}, {"a": 7}]
    with pytest.raises(ColumnsChanged, match="start the query again"):
        read(running, old, wider)
    again = decoder(AVRO, reader_schema(AVRO, "u", "s"), "u", "s")
    assert read(again, old, wider) == [{"a": 1}, {"a": wide}]
    assert read(decoder(AVRO, columns, "u"), old, wider) == [{"a": 1}, None], "columns of the user"


def test_a_batch_may_mix_values_of_several_schemas_and_invalid_ones(registry: Registry) -> None:
    old = avro(registry, 1, {"a": 1}, a="int")
    new = avro(registry, 2, {"a": 1 << 40, "b": "x"}, a="long", b="string")
    decode = decoder(AVRO, reader_schema(AVRO, "", "s"), "", "s", settle_s=0)
    bad = [b"", b"\0\0", new[:-1], new + b"!", b"\1" + new[1:], b"\0\0\0\0\x09x"]
    first = {"a": 1, "b": None}
    second = {"a": 1 << 40, "b": "x"}
    for _ in range(2):
        found = read(decode, old, new, *bad, new, old)
        assert found == [first, second, *[None] * len(bad), second, first]


def test_a_field_missing_inside_an_old_value_has_its_default(registry: Registry) -> None:
    inner, grown = (record(x="int", **more) for more in ({}, {"y": "string"}))
    grown["fields"][1]["default"] = "none"

    def row(kind: Any, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        many = {"type": "array", "items": {**kind, "name": "one"}}
        named = {"type": "map", "values": ["null", {**kind, "name": "two"}]}
        values = {"r": value, "many": [value], "named": {"k": value, "none": None}}
        return values, {"r": ["null", {**kind, "name": "in"}], "many": many, "named": named}

    values, kinds = row(inner, {"x": 1})
    old = avro(registry, 1, values, **kinds)
    values, kinds = row(grown, {"x": 2, "y": "own"})
    new = avro(registry, 2, values, **kinds)
    decode = decoder(AVRO, reader_schema(AVRO, "u", "s"), "u", "s")
    found = [row({}, {"x": 1, "y": "none"})[0], values]
    for each in found:
        each["named"] = [*each["named"].items()]
    assert read(decode, old, new) == found


def test_a_value_of_another_subject_that_does_not_fit_is_null(registry: Registry) -> None:
    own = avro(registry, 1, {"a": 1}, a="int")
    columns = reader_schema(AVRO, "u", "s")
    foreign = avro(registry, 2, {"a": "x"}, a="string")
    registry.foreign.add(2)
    assert read(decoder(AVRO, columns, "u", "s"), foreign, own) == [None, {"a": 1}]


@pytest.mark.parametrize("schema", [record(next=["null", "r"]), "string"])
def test_a_value_whose_schema_has_no_columns_is_null_unless_it_is_of_the_subject(
    registry: Registry, schema: Any
) -> None:
    own = avro(registry, 1, {"a": 1}, a="int")
    columns = reader_schema(AVRO, "u", "s")
    registry.schemas[2] = json.dumps(schema)
    registry.foreign.add(2)
    assert read(decoder(AVRO, columns, "u", "s"), b"\0\0\0\0\2\0", own) == [None, {"a": 1}]
    registry.foreign.clear()
    with pytest.raises(ConfigError, match=r"contains itself|'s': the schema is not"):
        read(decoder(AVRO, columns, "u", "s"), b"\0\0\0\0\2\0", own)


def test_an_id_counts_as_unknown_after_a_lagging_instance_had_time_to_catch_up(
    registry: Registry,
) -> None:
    value = avro(registry, 1, {"a": 1}, a="int")
    columns = json.dumps(record(a="int"))
    registry.lag = 3
    assert read(decoder(AVRO, columns, "u"), value) == [{"a": 1}]
    bad = b"\0\0\0\3\xe7\2"
    hurried = decoder(AVRO, columns, "u", settle_s=0)
    registry.asked = 3
    assert read(hurried, bad, value, bad) == [None, {"a": 1}, None]
    assert registry.asked == 4, "each unknown id once for a task"


def test_a_worker_requests_each_schema_once(registry: Registry) -> None:
    value = avro(registry, 1, {"a": 1}, a="int")
    columns = json.dumps(record(a="int"))
    assert read(decoder(AVRO, columns, "u"), value) == [{"a": 1}]
    registry.is_away = True
    assert read(decoder(AVRO, columns, "u"), value) == [{"a": 1}], "another task"
    with pytest.raises(RegistryFailed, match="away"):
        read(decoder(AVRO, columns, "u"), value, b"\0\0\0\0\2\2")


def test_json_that_is_nested_too_deeply_is_null(registry: Registry) -> None:
    registry.schemas[1], registry.kind = "{}", "JSON"
    decode = decoder("confluent-json", json.dumps(record(a="long")), "u")
    prefix = b"\0\0\0\0\1"
    deep = b'{"a":' * 100_000
    assert read(decode, prefix + deep, prefix + b'{"a": 1}') == [None, {"a": 1}]


PARTS = record(
    whole="long",
    flag="boolean",
    text="string",
    single="float",
    double="double",
    items={"type": "array", "items": "int"},
    counts={"type": "map", "values": "int"},
    inner={**record(x="int"), "name": "inner"},
)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("whole", [None, 1, -1.0], [1.5, True, float("nan")]),
        ("single", [1, 1.5, float("inf")], [0.1, 1e300, True]),
        ("double", [1, 0.1], [True]),
        ("flag", [True], [1, "true"]),
        ("text", ["x"], [1, True]),
        ("items", [[], [1, None]], ["", {}, [1.5]]),
        ("counts", [{}, {"a": 1, "b": None}], ["", [], {"a": 1.5}]),
        ("inner", [{}, {"x": 1, "y": 1.5}], [[], {"x": 1.5}]),
    ],
)
def test_a_column_accepts_only_values_that_it_can_hold_unchanged(
    name: str, good: list[Any], bad: list[Any]
) -> None:
    fits = fitting(record_type(json.dumps(PARTS)).read)
    assert [each for each in good if not fits({name: each})] == []
    assert [each for each in bad if fits({name: each})] == []


def json_schema(**properties: str) -> str:
    typed = {name: {"type": kind} for name, kind in properties.items()}
    return json.dumps({"type": "object", "properties": typed})


@pytest.mark.parametrize(
    ("later", "value", "before", "after"),
    [
        ({"a": "number"}, '{"a": 1.5}', None, None),
        ({"a": "number"}, '{"a": 1e30}', None, None),
        ({"a": "integer", "b": "integer"}, '{"a": 1, "b": "x"}', {"a": 1}, {"a": 1, "b": None}),
        ({"a": "integer", "b": "string"}, '{"a": 1, "b": "x"}', {"a": 1}, {"a": 1, "b": "x"}),
    ],
)
def test_columns_do_not_decide_whether_json_is_null(
    registry: Registry, later: dict[str, str], value: str, before: Any, after: Any
) -> None:
    """One query of a flow takes the values, another the nulls; a restart may lie between them."""
    registry.kind, registry.schemas[1] = "JSON", json_schema(a="integer")
    found = b"\0\0\0\0\1" + value.encode()
    columns = reader_schema("confluent-json", "u", "s")
    assert read(decoder("confluent-json", columns, "u", "s"), found) == [before]
    registry.schemas[2] = json_schema(**later)
    columns = reader_schema("confluent-json", "u", "s")
    assert read(decoder("confluent-json", columns, "u", "s"), found) == [after]


def test_json_with_columns_given_by_the_user_is_judged_by_them(registry: Registry) -> None:
    registry.kind, registry.schemas[1] = "JSON", json_schema(a="integer")
    decode = decoder("confluent-json", json.dumps(record(b=["null", "long"])), "u")
    given = [b'{"b": 2}', b'{"b": "x"}', b'{"b": 3, "a": "x"}']
    assert read(decode, *(b"\0\0\0\0\1" + each for each in given)) == [{"b": 2}, None, {"b": 3}]
