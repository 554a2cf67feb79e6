"""The shipped test kit, used as a user would."""

import socket
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.errors import ConfigError, KafkaError
from penstock.testing import broker as broker_kit
from penstock.testing import cluster as cluster_kit
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.cluster import TemporaryCluster
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def produced(bootstrap: str, topic: str, *values: str) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(10) == 0
    assert failed == [None] * len(values)


def consumed(bootstrap: str, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += [
            (m.value() or b"").decode() for m in consumer.consume(count, 0.2) if not m.error()
        ]
    return found


def test_a_test_produces_and_reads_back_through_a_real_client(broker: EmbeddedBroker) -> None:
    produced(broker.bootstrap, "orders", "a", "b", "c")
    assert consumed(broker.bootstrap, "orders", 3) == ["a", "b", "c"]


def test_a_test_creates_topics_without_a_client_library(broker: EmbeddedBroker) -> None:
    broker.create_topic("made", partitions=3, configs={"retention.ms": "1000"})
    topic = broker.running.services.cluster.image.topics["made"]
    assert len(topic.partitions) == 3
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        broker.create_topic("made")


def test_the_first_consumer_of_a_test_does_not_wait_for_others(broker: EmbeddedBroker) -> None:
    assert broker.running.services.config.group.group_initial_rebalance_delay_ms == 0


def test_a_broker_of_two_workers_keeps_its_data(tmp_path: Path) -> None:
    for _ in range(2):
        with EmbeddedBroker(directory=tmp_path, workers=2) as broker:
            produced(broker.bootstrap, "orders", "a", "b")
            assert len(broker.state.workers) == 2
            with urlopen(f"http://{broker.http}/readyz") as page:
                assert page.status == 200
    with EmbeddedBroker(workers=2) as broker:
        broker.create_topic("t", 4)
    with EmbeddedBroker(directory=tmp_path, workers=2) as broker:
        assert consumed(broker.bootstrap, "orders", 4) == ["a", "b", "a", "b"]


def test_settings_that_workers_refuse_are_reported() -> None:
    with (
        pytest.raises(ConfigError, match=r"num\.partitions"),
        EmbeddedBroker(workers=2, settings={"num.partitions": "0"}),
    ):
        pass


def test_a_directory_may_be_given_as_a_string(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=str(tmp_path)) as broker:
        assert broker.bootstrap
    assert (tmp_path / "logs").is_dir()


def test_an_idle_connection_is_closed_about_when_the_setting_says() -> None:
    with EmbeddedBroker(settings={"connections.max.idle.ms": "500"}) as broker:
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as sock:
            began = time.monotonic()
            assert sock.recv(1) == b""
            assert 0.4 < time.monotonic() - began < 6


def test_the_broker_is_ready_at_once_and_reports_its_health(broker: EmbeddedBroker) -> None:
    with urlopen(f"http://{broker.http}/readyz") as answer:
        assert answer.status == 200
    with urlopen(f"http://{broker.http}/metrics") as answer:
        text = answer.read().decode()
    assert "kafka_controller_kafkacontroller_activecontrollercount 1" in text


def test_data_in_a_given_directory_survives_the_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as first:
        produced(first.bootstrap, "kept", "x")
    with EmbeddedBroker(directory=tmp_path) as second:
        produced(second.bootstrap, "kept", "y")
        assert consumed(second.bootstrap, "kept", 2) == ["x", "y"]


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(directory=tmp_path),
        pytest.raises(ConfigError, match="in use"),
        EmbeddedBroker(directory=tmp_path),
    ):
        pass


def test_a_wrong_setting_raises_in_the_test() -> None:
    with (
        pytest.raises(ConfigError, match=r"num\.partitions"),
        EmbeddedBroker(settings={"num.partitions": "none"}),
    ):
        pass


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"zookeeper.connect": "127.0.0.1:2181"}, "zookeeper.connect"),
        ({"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}, "speaks SSL"),
        ({"listeners": "PLAINTEXT://203.0.113.1:0"}, "cannot listen on"),
        ({"log.dirs": "/proc/nowhere"}, "/proc/nowhere"),
    ],
)
def test_unsupported_settings_are_refused_by_name(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named), EmbeddedBroker(settings=settings):
        pass


@pytest.mark.row("A145")
def test_each_listener_advertises_its_own_address() -> None:
    """The address that a client gets depends on the listener that it used."""
    settings = {
        "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://:0",
        "advertised.listeners": "INTERNAL://127.0.0.1:19,EXTERNAL://broker.example:99",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }
    with EmbeddedBroker(settings=settings) as broker:
        assert broker.running.state.listeners == {
            "INTERNAL": "127.0.0.1:19",
            "EXTERNAL": "broker.example:99",
        }


def test_a_request_that_waits_for_the_controller_does_not_delay_the_stop() -> None:
    """The controller's queue ends first: a request in the queue would wait for ever."""
    stopping = EmbeddedBroker()
    with stopping:
        host, port = stopping.bootstrap.split(":")
        topics = [MetadataRequestTopic(name=f"new-{number}") for number in range(200)]
        frame = request_frame(APIS[3], 4, 1, "impatient", MetadataRequest(topics=topics))
        clients = [socket.create_connection((host, int(port))) for _ in range(5)]
        for client in clients:
            client.sendall(frame)  # creates topics, one request after the other
    for client in clients:
        client.close()


def test_the_kit_still_has_the_names_of_version_0_1() -> None:
    assert (broker_kit.Broker, cluster_kit.Cluster) == (EmbeddedBroker, TemporaryCluster)
