"""Lag in `/metrics`."""

import re
import urllib.request

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.testing.broker import EmbeddedBroker

QUIET = {"log_level": 0}
SETTINGS = {
    "penstock.http.listen": "127.0.0.1:0",
    "offsets.topic.num.partitions": "2",
    "num.partitions": "2",
}


def read(broker: EmbeddedBroker) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
        text = response.read().decode()
    return {
        name: float(value)
        for name, value in re.findall(r"^(kafka_consumergroup\S+) (\S+)$", text, re.MULTILINE)
    }


@pytest.mark.row("A160")
def test_lag_is_reported_in_records_and_in_seconds() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for number in range(10):
            producer.produce("t", b"x", partition=number % 2, timestamp=1000)
            producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
        offsets = [TopicPartition("t", 0, 2), TopicPartition("t", 1, 5)]
        consumer.commit(offsets=offsets, asynchronous=False)
        found = read(broker)
        consumer.close()
    first = 'consumergroup="g",topic="t",partition="0"'
    second = 'consumergroup="g",topic="t",partition="1"'
    assert found[f"kafka_consumergroup_current_offset{{{first}}}"] == 2
    assert found[f"kafka_consumergroup_lag{{{first}}}"] == 3
    assert found[f"kafka_consumergroup_lag_seconds{{{first}}}"] > 1e9
    assert found[f"kafka_consumergroup_lag{{{second}}}"] == 0
    assert found[f"kafka_consumergroup_lag_seconds{{{second}}}"] == 0
    assert found['kafka_consumergroup_members{consumergroup="g"}'] == 0


def test_lag_in_seconds_uses_log_append_time_if_the_topic_does() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        broker.create_topic("t", 1, configs={"message.timestamp.type": "LogAppendTime"})
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        producer.produce("t", b"x", timestamp=1000)
        producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        found = read(broker)
        consumer.close()
    assert found['kafka_consumergroup_lag_seconds{consumergroup="g",topic="t",partition="0"}'] < 1e6


def test_members_and_lag_of_a_consumer_protocol_group_are_reported() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for number in range(10):
            producer.produce("t", b"x", partition=number % 2)
        assert producer.flush(10) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "k",
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        consumer.subscribe(["t"])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.05)
        offsets = [TopicPartition("t", 0, 2), TopicPartition("t", 1, 4)]
        consumer.commit(offsets=offsets, asynchronous=False)
        found = read(broker)
        consumer.close()
    assert found['kafka_consumergroup_members{consumergroup="k"}'] == 1
    assert found['kafka_consumergroup_lag{consumergroup="k",topic="t",partition="0"}'] == 3
    assert found['kafka_consumergroup_lag{consumergroup="k",topic="t",partition="1"}'] == 1
    of_topic = '{consumergroup="k",topic="t"}'
    assert found[f"kafka_consumergroup_lag_sum{of_topic}"] == 4
    assert found[f"kafka_consumergroup_current_offset_sum{of_topic}"] == 6
