"""Consumer settings, each tested by its effect."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Position
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CorruptRecordError

from penstock.testing.broker import EmbeddedBroker

RECORDS = 6


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        running.create_topic("read", 1)
        settings = {"bootstrap.servers": running.bootstrap, "group.id": "g", "log_level": 0}
        with closing(Consumer(settings)) as consumer:  # creates the internal topic
            consumer.commit(offsets=[Position("read", 0, 0)], asynchronous=False)
        yield running


@pytest.fixture
def filled(broker: EmbeddedBroker, topic: str) -> str:
    """A topic of one partition, with a batch for each record."""
    broker.create_topic(topic, 1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number * 1000, partition=0).get(20)
    return topic


def polled(broker: EmbeddedBroker, topic: str, **settings: object) -> list[int]:
    """How many records each poll returns until none are left."""
    counts: list[int] = []
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **settings
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0)])
        while sum(counts) < RECORDS:
            found = consumer.poll(timeout_ms=20_000)
            counts.append(sum(map(len, found.values())))
            assert counts[-1], "it waited for too long"
    return counts


@pytest.mark.row("A057")
@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({}, [RECORDS]),
        ({"max_poll_records": 4}, [4, 2]),
        # A fetch returns at least one batch, or the consumer would never make progress.
        ({"max_partition_fetch_bytes": 1}, [1] * RECORDS),
        ({"fetch_max_bytes": 1}, [1] * RECORDS),
        ({"max_partition_fetch_bytes": 2500}, [2, 2, 2]),
        ({"fetch_min_bytes": 1 << 20, "fetch_max_wait_ms": 20}, [RECORDS]),
    ],
    ids=str,
)
def test_a_poll_returns_as_much_as_the_limits_allow(
    broker: EmbeddedBroker, filled: str, settings: dict[str, int], counts: list[int]
) -> None:
    assert polled(broker, filled, **settings) == counts


@pytest.mark.row("A057")
def test_consumers_that_check_crcs_detect_damaged_records(
    broker: EmbeddedBroker, filled: str
) -> None:
    log = broker.running.services.replicas.partitions.get(filled, 0).log
    (segment,) = log.path.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-2] ^= 1  # within the last value
    segment.write_bytes(data)
    assert sum(polled(broker, filled, check_crcs=False)) == RECORDS
    with pytest.raises(CorruptRecordError):
        polled(broker, filled, check_crcs=True)


@pytest.mark.row("A057")
@pytest.mark.parametrize("excluded", [True, False])
def test_a_subscription_pattern_may_exclude_internal_topics(
    broker: EmbeddedBroker, filled: str, excluded: bool
) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, group_id=filled, exclude_internal_topics=excluded
    )
    with closing(consumer):
        consumer.subscribe(pattern=f"^({filled}|__consumer_offsets)$")
        while not consumer.assignment():
            consumer.poll(timeout_ms=50)
        topics = {each.topic for each in consumer.assignment()}
    assert topics == ({filled} if excluded else {filled, "__consumer_offsets"})


@pytest.mark.row("A176")
def test_an_unknown_value_of_auto_offset_reset_is_an_error(broker: EmbeddedBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "log_level": 0}
    with pytest.raises(KafkaException, match=r'"sometimes" for configuration.*auto\.offset\.reset'):
        Consumer({**settings, "auto.offset.reset": "sometimes"})
