"""Unmodified clients: serializers of confluent-kafka, kafkajs and franz-go."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from clients.programs import go_program, node_program
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry

GO = Path(__file__).parents[2] / "clients" / "registry_go"
EXAMPLE = Path(__file__).parents[3] / "examples" / "avro_evolution.py"
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}],
}
WAIT_S = 60


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.fixture
def client(registry: EmbeddedRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url, "max.retries": 0}) as client:
        yield client


@pytest.mark.row("A020")
def test_the_evolution_example_reads_in_both_directions(
    broker: EmbeddedBroker, registry: EmbeddedRegistry
) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), broker.bootstrap, registry.url],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    )
    assert done.stdout.splitlines() == [
        "old reader: {'id': 1, 'note': 'by the first program'}",
        "old reader: {'id': 2, 'note': ''}",
        "new reader: {'id': 1, 'price': 0}",
        "new reader: {'id': 2, 'price': 9.5}",
        "refused: 409",
    ]


def test_confluent_kafkas_serializers_work(client: SchemaRegistryClient) -> None:
    avro = AvroSerializer(client, json.dumps(ORDER))({"id": 1, "note": "n"}, context("avro"))
    assert AvroDeserializer(client)(avro, context("avro")) == {"id": 1, "note": "n"}

    schema = json.dumps({"title": "t", "type": "object", "properties": {"a": {"type": "integer"}}})
    written = JSONSerializer(schema, client)({"a": 1}, context("json"))
    read = JSONDeserializer(None, schema_registry_client=client)
    assert read(written, context("json")) == {"a": 1}

    order = messages()
    message = order(id=3, line={"count": 2})
    packed = ProtobufSerializer(order, client)(message, context("proto"))
    assert (
        ProtobufDeserializer(order, schema_registry_client=client)(packed, context("proto"))
        == message
    )
    registered = client.get_latest_version("proto-value").schema
    assert registered.schema_type == "PROTOBUF"
    assert [each.subject for each in registered.references or ()] == ["line.proto"]
    assert ProtobufSerializer(order, client)(message, context("proto")) == packed


def messages() -> Any:
    """A message whose file imports another one, which becomes a reference."""
    kinds = descriptor_pb2.FieldDescriptorProto
    line = descriptor_pb2.FileDescriptorProto(name="line.proto", package="shop", syntax="proto3")
    line.message_type.add(name="Line").field.add(
        name="count", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL
    )
    order = descriptor_pb2.FileDescriptorProto(
        name="order.proto", package="shop", syntax="proto3", dependency=["line.proto"]
    )
    fields = order.message_type.add(name="Order").field
    fields.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    fields.add(
        name="line",
        number=2,
        type=kinds.TYPE_MESSAGE,
        type_name=".shop.Line",
        label=kinds.LABEL_OPTIONAL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(line)
    pool.Add(order)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_confluent_kafkas_registry_client_works(client: SchemaRegistryClient) -> None:
    order = Schema(json.dumps(ORDER), "AVRO")
    made = client.register_schema("s", order)
    assert client.register_schema("s", order) == made
    assert client.lookup_schema("s", order).version == 1
    assert client.get_subjects() == ["s"]
    assert client.get_versions("s") == [1]
    assert json.loads(client.get_version("s", 1).schema.schema_str or "") == ORDER
    assert not client.test_compatibility("s", Schema('"int"', "AVRO"))
    client.set_compatibility("s", "NONE")
    assert client.get_compatibility("s") == "NONE"
    reference = SchemaReference("shop.Order", "s", 1)
    many = Schema('{"type":"array","items":"shop.Order"}', "AVRO", [reference])
    client.register_schema("many", many)
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_version("s", 1)
    assert (refused.value.http_status_code, refused.value.error_code) == (422, 42206)
    for subject in ("many", "s"):
        assert client.delete_subject(subject) == [1]
        assert client.delete_subject(subject, permanent=True) == [1]
    client.clear_caches()  # type: ignore[no-untyped-call]
    with pytest.raises(SchemaRegistryError) as unknown:
        client.get_schema(made)
    assert (unknown.value.http_status_code, unknown.value.error_code) == (404, 40403)


def test_values_of_unknown_schemas_are_errors(client: SchemaRegistryClient) -> None:
    read = AvroDeserializer(client)
    with pytest.raises(SerializationError, match=r"(?i)magic"):
        read(b"\x07\x00\x00\x00\x01rest", context("t"))
    with pytest.raises(SchemaRegistryError, match="Schema 77 not found"):
        read(b"\x00\x00\x00\x00\x4drest", context("t"))


@pytest.mark.peer
def test_clients_in_other_languages_read_each_others_values(
    client: SchemaRegistryClient, registry: EmbeddedRegistry
) -> None:
    def output(command: list[str]) -> bytes:
        run: Any = subprocess.run(
            [*command, registry.url, "orders-value"],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        assert run.returncode == 0, run.stderr
        return bytes.fromhex(run.stdout.strip())

    by_python = AvroSerializer(client, json.dumps(ORDER))({"id": 7, "note": ""}, context("orders"))
    by_js = output(node_program("registry_js"))
    expected = {"id": 7, "note": "from kafkajs"}
    assert AvroDeserializer(client)(by_js, context("orders")) == expected
    assert by_python is not None
    assert output(go_program("registry", GO)) == by_python[:5]
