"""Confluent's serializers in the SDK's clients, with Penstock's registry."""

import json

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

from penstock.sdk import Consumer, Producer, Registered
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {
    **OLD,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string", "default": "none"},
    ],
}


def test_a_schema_evolves_within_a_topic(
    broker: EmbeddedBroker, registry: EmbeddedRegistry
) -> None:
    broker.create_topic("orders", 1)
    config = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    with SchemaRegistryClient({"url": registry.url}) as client:
        for schema, order in ((OLD, {"id": 1}), (NEW, {"id": 2, "item": "tea"})):
            value = Registered("orders", AvroSerializer(client, json.dumps(schema)))
            with Producer(config, value=value) as producer:
                producer.send("orders", order)
        reading = {**config, "group.id": "g", "auto.offset.reset": "earliest"}
        new = Registered("orders", None, AvroDeserializer(client, json.dumps(NEW)))
        with Consumer(reading, ["orders"], value=new) as consumer:
            found = []
            for record in consumer.records(10):
                found.append(record.value)
                if len(found) == 2:
                    break
    assert found == [{"id": 1, "item": "none"}, {"id": 2, "item": "tea"}]
