"""`EmbeddedBroker` and its fixture deliver delayed records, as `penstock serve` does."""

import time

from confluent_kafka import Consumer, Producer

from penstock.testing.broker import EmbeddedBroker

WAIT_S = 20


def first_value(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    end_s = time.monotonic() + WAIT_S
    try:
        while time.monotonic() < end_s:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                return message.value()
        return None
    finally:
        consumer.close()


def test_a_test_receives_its_delayed_record(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders")
    broker.create_topic("later", configs={"penstock.delay.to": "orders"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("later", b"soon", headers={"penstock-delay-ms": "50"})
    producer.flush(WAIT_S)
    assert first_value(broker.bootstrap, "orders") == b"soon"
