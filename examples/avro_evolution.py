"""Avro values whose schema changes: old readers read new values, and new readers old ones.

    python examples/avro_evolution.py BOOTSTRAP REGISTRY_URL

The schema is not in the records: each has a number that the registry knows. FULL compatibility
makes the registry refuse a version that would break a reader.
"""

import sys
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

TOPIC = "orders"
ORDER_1 = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]}"""
ORDER_2 = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "price", "type": "double", "default": 0}]}"""
BROKEN = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}"""


def write(bootstrap: str, registry: SchemaRegistryClient, schema: str, order: Any) -> None:
    serializer = AvroSerializer(registry, schema)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(TOPIC, serializer(order, SerializationContext(TOPIC, MessageField.VALUE)))
    producer.flush()


def read(bootstrap: str, registry: SchemaRegistryClient, schema: str, group: str) -> list[Any]:
    """Both orders, as somebody sees them who knows this schema only."""
    deserializer = AvroDeserializer(registry, schema)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    orders: list[Any] = []
    while len(orders) < 2:
        message = consumer.poll(10)
        if message is not None and message.error() is None:
            context = SerializationContext(TOPIC, MessageField.VALUE)
            orders.append(deserializer(message.value(), context))
    consumer.close()
    return orders


def main(bootstrap: str, url: str) -> None:
    registry = SchemaRegistryClient({"url": url})
    registry.set_compatibility(f"{TOPIC}-value", "FULL")
    write(bootstrap, registry, ORDER_1, {"id": 1, "note": "by the first program"})
    write(bootstrap, registry, ORDER_2, {"id": 2, "price": 9.5})
    for name, schema in (("old", ORDER_1), ("new", ORDER_2)):
        for order in read(bootstrap, registry, schema, name):
            print(f"{name} reader: {order}")
    try:
        write(bootstrap, registry, BROKEN, {"id": "three"})
    except SchemaRegistryError as error:
        print(f"refused: {error.http_status_code}")


if __name__ == "__main__":
    main(*sys.argv[1:])
