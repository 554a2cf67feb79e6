"""Values with schema ids in Arrow columns, with a real registry."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql.types import StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.record_view.registry import RegistryFailed
from penstock.spark.confluent.values import decoder, reader_schema
from penstock.spark.data_source import PenstockSource
from penstock.spark.sink.settings import read_sink_settings
from penstock.spark.sink.task import write
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry

CONTEXT = SerializationContext("t", MessageField.VALUE)
NUMBER = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
NUMBER_2 = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": "long"},
            {"name": "b", "type": "string", "default": "none"},
        ],
    }
)


@pytest.fixture
def client(registry: EmbeddedRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def read(name: str, url: str, values: list[Any]) -> list[Any]:
    schema = reader_schema(name, url, "t-value")
    decode = decoder(name, schema, url, "t-value", settle_s=0)
    return list(decode(pa.array(values, pa.binary())).to_pylist())


@pytest.mark.row("A020")
def test_a_column_has_the_fields_of_all_versions(
    client: SchemaRegistryClient, registry: EmbeddedRegistry
) -> None:
    old = AvroSerializer(client, NUMBER)({"a": 1}, CONTEXT)
    new = AvroSerializer(client, NUMBER_2)({"a": 1 << 40, "b": "x"}, CONTEXT)
    assert old is not None
    bad = [None, b"", b"\x01" + old[1:], b"\x00\x00\x00\x03\xe7\x02", old + b"!", old[:5]]
    found = read("confluent-avro", registry.url, [old, new, *bad, old])
    assert found == [
        {"a": 1, "b": "none"},
        {"a": 1 << 40, "b": "x"},
        *[None] * len(bad),
        {"a": 1, "b": "none"},
    ]


def test_a_later_version_is_read_as_far_as_there_are_columns(
    client: SchemaRegistryClient, registry: EmbeddedRegistry
) -> None:
    AvroSerializer(client, NUMBER)({"a": 1}, CONTEXT)
    schema = reader_schema("confluent-avro", registry.url, "t-value")
    decode = decoder("confluent-avro", schema, registry.url)
    later = AvroSerializer(client, NUMBER_2)({"a": 5, "b": "x"}, CONTEXT)
    assert decode(pa.array([later], pa.binary())).to_pylist() == [{"a": 5}]


def test_json_values_are_read(client: SchemaRegistryClient, registry: EmbeddedRegistry) -> None:
    tags = {"type": "array", "items": {"type": "string"}}
    properties = {"id": {"type": "integer"}, "tags": tags}
    schema = {"title": "t", "type": "object", "properties": properties}
    value = JSONSerializer(json.dumps(schema), client)({"id": 3, "tags": ["a"]}, CONTEXT)
    assert value is not None
    found = read("confluent-json", registry.url, [value, value[:-1], value[:5] + b"[]"])
    assert found == [{"id": 3, "tags": ["a"]}, None, None]


PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1; optional string note = 2; repeated Line lines = 3; map<string, int32> counts = 4;
  State state = 5; google.protobuf.Timestamp at = 6;
  message Line { double price = 1; }
  enum State { NEW = 0; DONE = 1; }
}"""


def test_protobuf_values_are_read(client: SchemaRegistryClient, registry: EmbeddedRegistry) -> None:
    made = client.register_schema("t-value", Schema(PROTO, "PROTOBUF"))
    prefix = b"\x00" + made.to_bytes(4)
    body = b"\x08\x07\x1a\x09\x09" + b"\x00\x00\x00\x00\x00\x00\x04\x40"
    body += b"\x22\x05\x0a\x01k\x10\x02\x28\x01\x32\x02\x08\x09"
    values = [prefix + b"\x00" + body, prefix + b"\x00\xff", prefix, prefix + b"\x02\x08"]
    found = read("confluent-protobuf", registry.url, values)
    assert found[0] == {
        "id": 7,
        "note": None,
        "lines": [{"price": 2.5}],
        "counts": [("k", 2)],
        "state": "DONE",
        "at": {"seconds": 9, "nanos": 0},
    }
    assert found[1:] == [None] * 3


def test_unreadable_values_are_errors(
    client: SchemaRegistryClient, registry: EmbeddedRegistry
) -> None:
    with pytest.raises(ConfigError, match="no subject 't-value'"):
        reader_schema("confluent-avro", registry.url, "t-value")
    value = AvroSerializer(client, NUMBER)({"a": 1}, CONTEXT)
    with pytest.raises(ConfigError, match="has schemas of AVRO"):
        reader_schema("confluent-json", registry.url, "t-value")
    down = decoder("confluent-avro", NUMBER, "http://127.0.0.1:1")
    with pytest.raises(RegistryFailed, match="cannot be reached"):
        down(pa.array([value], pa.binary()))


SCHEMAS = {
    "confluent-avro": json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "customer", "type": ["null", "string"], "default": None},
            ],
        }
    ),
    "confluent-json": json.dumps(
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "customer": {"type": "string"}},
        }
    ),
    "confluent-protobuf": (
        'syntax = "proto3"; message Order { int64 id = 1; optional string customer = 2; }'
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_source_reads_what_the_sink_writes(
    broker: EmbeddedBroker, registry: EmbeddedRegistry, name: str
) -> None:
    broker.create_topic("orders", 1)
    common = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "valueFormat": name,
        "schema.registry.url": registry.url,
    }
    rows = [{"id": 1, "customer": "ann"}, {"id": 2, "customer": None}]
    kind = pa.struct([("id", pa.int64()), ("customer", pa.string())])
    batch = pa.RecordBatch.from_pydict({"value": pa.array([*rows, None], kind)})
    types = {"value": "struct<id:bigint,customer:string>"}
    given = {"topic": "orders", **common}
    registering, _ = read_sink_settings(
        {**given, "valueSchema": SCHEMAS[name]}, types, streaming=False
    )
    assert write([batch], registering) == 3
    by_latest, _ = read_sink_settings(given, types, streaming=False)
    assert write([batch.slice(0, 1)], by_latest) == 1

    source = PenstockSource({"subscribe": "orders", **common})
    assert source.schema().endswith("fields struct<id:bigint,customer:string>")
    names = [each.split(" ")[0] for each in source.schema().split(", ")]
    reader = source.reader(StructType([StructField(each, StringType()) for each in names]))
    found = [
        row
        for part in reader.partitions()
        for each in reader.read(part)
        for row in pa.Table.from_batches([each]).column("fields").to_pylist()
    ]
    assert found == [*rows, None, rows[0]]

    wrong = pa.array([{"id": None, "customer": "x"}], kind)
    if name == "confluent-avro":
        with pytest.raises(ConfigError, match="a row does not fit schema"):
            write([pa.RecordBatch.from_pydict({"value": wrong})], by_latest)


def test_the_sink_needs_a_struct_and_a_subject() -> None:
    options = {
        "kafka.bootstrap.servers": "h:1",
        "valueFormat": "confluent-avro",
        "schema.registry.url": "http://h:2",
    }
    for more, types, message in (
        ({"topic": "t"}, {"value": "string"}, "needs a struct"),
        ({}, {"value": "struct<a:int>", "topic": "string"}, "valueSubject is needed"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_sink_settings({**options, **more}, types, streaming=False)
