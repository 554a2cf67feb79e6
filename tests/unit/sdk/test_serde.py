"""Serializers without a broker."""

from dataclasses import dataclass

import pytest
from google.protobuf.wrappers_pb2 import Int64Value, StringValue
from hypothesis import given
from hypothesis import strategies as st

from penstock.sdk.serde import RAW, STRING, Json, MessagePack
from penstock.sdk.serde.avro import Avro
from penstock.sdk.serde.json_schema import JsonSchema
from penstock.sdk.serde.protobuf import Protobuf

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_json_and_messagepack_round_trip(value: object) -> None:
    for serde in (Json(), MessagePack()):
        assert serde.deserialize(serde.serialize(value)) == value


@given(st.text(), st.binary())
def test_text_and_bytes_round_trip(text: str, data: bytes) -> None:
    assert STRING.deserialize(STRING.serialize(text)) == text
    assert RAW.deserialize(RAW.serialize(data)) == data


@dataclass
class Order:
    id: int
    item: str


def test_a_type_is_checked_when_read() -> None:
    serde = Json(Order)
    assert serde.deserialize(serde.serialize(Order(1, "tea"))) == Order(1, "tea")
    with pytest.raises(ValueError, match="missing required field"):
        serde.deserialize(b'{"id": 1}')
    packed = MessagePack(Order)
    assert packed.deserialize(packed.serialize(Order(1, "tea"))) == Order(1, "tea")


OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string", "default": "none"},
    ],
}


@pytest.mark.row("A020")
def test_an_avro_schema_changes_in_both_directions() -> None:
    old, new = Avro(OLD, also=[NEW]), Avro(NEW, also=[OLD])
    assert new.deserialize(old.serialize({"id": 1})) == {"id": 1, "item": "none"}
    assert old.deserialize(new.serialize({"id": 1, "item": "tea"})) == {"id": 1}


def test_avro_names_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown schema"):
        Avro(OLD).deserialize(Avro(NEW).serialize({"id": 1, "item": "tea"}))
    with pytest.raises(ValueError, match="C3 01"):
        Avro(OLD).deserialize(b"{}")


def test_avros_fingerprint_is_that_of_the_specification() -> None:
    # CRC-64-AVRO of "int" is 7275d51a3f395c8f, written with its low byte first.
    assert Avro("int").serialize(1)[:10].hex() == "c301" + "8f5c393f1ad57572"


def test_protobuf_messages_are_of_one_class() -> None:
    serde = Protobuf(StringValue)
    assert serde.deserialize(serde.serialize(StringValue(value="x"))).value == "x"
    with pytest.raises(TypeError, match="Int64Value is no StringValue"):
        serde.serialize(Int64Value(value=1))


def test_json_schema_is_checked_both_ways() -> None:
    serde = JsonSchema({"type": "object", "properties": {"id": {"type": "integer"}}})
    assert serde.deserialize(serde.serialize({"id": 1})) == {"id": 1}
    with pytest.raises(ValueError, match="id: 'x' is not of type 'integer'"):
        serde.serialize({"id": "x"})
    with pytest.raises(ValueError, match="id: "):
        serde.deserialize(b'{"id": null}')
