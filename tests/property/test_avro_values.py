"""Avro values: everything that fastavro writes is read back, and no bytes make the reader fail."""

import io
import json
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.avro.schema import record_type
from penstock.spark.avro.values import decoder

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=20),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
}


def types() -> st.SearchStrategy[Any]:
    return st.recursive(
        st.sampled_from(sorted(PLAIN)),
        lambda inner: st.one_of(
            inner.map(lambda each: {"type": "array", "items": each}),
            inner.map(lambda each: {"type": "map", "values": each}),
            st.sampled_from(sorted(PLAIN)).map(lambda each: ["null", each]),
        ),
        max_leaves=4,
    )


def values(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, str):
        return PLAIN[kind]
    if isinstance(kind, list):
        return st.none() | values(kind[1])
    if kind["type"] == "array":
        return st.lists(values(kind["items"]), max_size=3)
    return st.dictionaries(PLAIN["string"], values(kind["values"]), max_size=3)


def schema_of(kinds: list[Any]) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "Row", "fields": fields}


def as_written(value: Any) -> Any:
    """Arrow represents a map as pairs."""
    if isinstance(value, dict):
        return [(key, as_written(each)) for key, each in value.items()]
    return [as_written(each) for each in value] if isinstance(value, list) else value


@given(st.data())
def test_written_values_are_read_back(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(types(), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.tuples(*map(values, kinds)), max_size=3))
    schema, written = schema_of(kinds), []
    for row in rows:
        out = io.BytesIO()
        given_row = {f"f{number}": each for number, each in enumerate(row)}
        schemaless_writer(out, parse_schema(schema), given_row)
        written.append(out.getvalue())
    found = decoder(record_type(json.dumps(schema)))(pa.array(written, pa.binary())).to_pylist()
    assert [[*each.values()] for each in found] == [[*map(as_written, row)] for row in rows]


@given(st.lists(types(), min_size=1, max_size=4), st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_a_row_or_null(kinds: list[Any], some: list[bytes]) -> None:
    schema = schema_of(
        [
            *kinds,
            ["null", "int", "string"],
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "time-micros"},
        ]
    )
    decode = decoder(record_type(json.dumps(schema)))
    assert len(decode(pa.array(some, pa.binary()))) == len(some)
