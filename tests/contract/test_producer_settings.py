"""Producer settings, each tested by its effect."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer

from clients.referee import Referee
from peers.penstock import PenstockBroker
from penstock.record.batch import batches
from penstock.testing.broker import EmbeddedBroker
from support.brokers.lossy_link import LossyLink

WAIT_S = 30
BACKOFF_MS = 700


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def batch_sizes(broker: EmbeddedBroker, topic: str) -> list[int]:
    """How many records each batch of the log has."""
    log = broker.running.services.replicas.partitions.get(topic, 0).log
    found = log.read(0, 1 << 20, up_to=log.end_offset)
    return [] if found is None else [each.record_count for _, each in batches(found.read())]


@pytest.mark.row("A031")
def test_waiting_for_each_record_sends_small_batches_and_one_flush_a_large_one(
    broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic, 1)
    settings: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "linger_ms": 60_000}
    with closing(KafkaProducer(**{**settings, "linger_ms": 0})) as producer:
        placed = [producer.send(topic, b"x", partition=0).get(WAIT_S).offset for _ in range(3)]
    assert placed == [0, 1, 2]
    with closing(KafkaProducer(**settings)) as producer:
        sent = [producer.send(topic, b"x", partition=0) for _ in range(3)]
        assert not any(each.is_done for each in sent)
        producer.flush(WAIT_S)
        assert [each.get(0).offset for each in sent] == [3, 4, 5]
    assert batch_sizes(broker, topic) == [1, 1, 1, 3]


@pytest.mark.row("A026")
@pytest.mark.parametrize("retries", [0, 1])
def test_a_producer_retries_as_often_as_allowed_and_then_reports_the_error(
    retries: int, topic: str
) -> None:
    reported: list[KafkaError | None] = []
    with LossyLink() as link:
        advertised = f"--set=advertised.listeners=PLAINTEXT://{link.address}"
        with (
            PenstockBroker(advertised, "--port", str(link.broker_port)),
            closing(Referee(link.address)) as referee,
        ):
            referee.create_topic(topic)
            producer = Producer(
                {
                    "bootstrap.servers": link.address,
                    "retries": retries,
                    "retry.backoff.ms": BACKOFF_MS,
                    "enable.idempotence": False,
                    "log_level": 0,
                }
            )
            producer.list_topics(topic, WAIT_S)
            link.lose("request")
            producer.produce(topic, b"x", on_delivery=lambda error, _: reported.append(error))
            assert link.lost.wait(WAIT_S)
            began_s = time.monotonic()
            assert producer.flush(WAIT_S) == 0
            took_s = time.monotonic() - began_s
            arrived = referee.offset(topic, 0, -1)
    (error,) = reported
    assert (arrived, error is None) == (retries, retries == 1)
    if retries:
        assert took_s > 0.8 * BACKOFF_MS / 1000, "librdkafka spreads the pause by a fifth"
