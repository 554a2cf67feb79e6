"""The metrics page of a broker: valid format, with the names that dashboards use."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from penstock.http.prometheus import lines
from penstock.retry.health import DelayHealth
from penstock.testing.broker import EmbeddedBroker
from support.metrics_page import parsed

DEPLOY = Path(__file__).parents[3] / "deploy"
QUIET = {"log_level": 0}
TOPIC = "kafka_server_brokertopicmetrics"
STRIMZI = {
    *(f"{TOPIC}_{each}_total" for each in ("messagesin", "bytesin", "bytesout")),
    *(f"{TOPIC}_{each}produceRequests_total".lower() for each in ("total", "failed")),
    *(f"{TOPIC}_{each}fetchRequests_total".lower() for each in ("total", "failed")),
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_log_log_size",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "process_open_fds",
}
EXPORTER = {
    "kafka_brokers",
    "kafka_topic_partitions",
    *(
        f"kafka_topic_partition_{each}"
        for each in (
            "current_offset",
            "oldest_offset",
            "in_sync_replica",
            "replicas",
            "leader",
            "leader_is_preferred",
            "under_replicated_partition",
        )
    ),
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_members",
    "kafka_consumergroup_group_lag_seconds",
}


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with EmbeddedBroker(settings={"offsets.topic.num.partitions": "1"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for _ in range(3):
            producer.produce("t", b"x", timestamp=1000)
            producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        with urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
            yield response.read().decode()
        consumer.close()


@pytest.mark.row("A160")
@pytest.mark.row("A161")
@pytest.mark.row("A184")
def test_dashboards_find_their_names(page: str) -> None:
    found = parsed(page)
    assert STRIMZI - found.keys() == set()
    assert EXPORTER - found.keys() == set()
    for name in ("consumer_lag", "kafka_consumergroup_lag"):
        assert list(found[name][2].values()) == [2.0]
    for name in ("consumer_lag_seconds", "kafka_consumergroup_group_lag_seconds"):
        assert min(found[name][2].values()) > 1e9
    labels = frozenset({("topic", "t"), ("partition", "0")})
    assert found["kafka_log_log_logendoffset"][2]["kafka_log_log_logendoffset", labels] == 3
    (free,) = found["penstock_log_directory_free_bytes"][2].values()
    (size,) = found["penstock_log_directory_disk_bytes"][2].values()
    assert 0 < free < size


def test_dead_letters_are_counted_by_topic() -> None:
    with EmbeddedBroker() as broker:
        enabled = {"errors.deadletterqueue.group.enable": "true"}
        broker.create_topic("failed", 1, configs=enabled)
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for topic in ("t", "t.dlq", "t.dlq", "failed"):
            producer.produce(topic, b"x")
        assert producer.flush(20) == 0
        with urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
            found = parsed(response.read().decode())
    counts = {
        dict(labels)["topic"]: value
        for (_, labels), value in found["penstock_dead_letter_records"][2].items()
    }
    assert counts == {"t.dlq": 2, "failed": 1}


@pytest.mark.parametrize("name", ["broker", "topics", "lag", "delay", "pipelines"])
def test_a_dashboard_uses_only_existing_metrics(page: str, name: str) -> None:
    dashboard = json.loads((DEPLOY / "grafana" / f"{name}.json").read_text())
    asked = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    asked += [each["query"] for each in dashboard["templating"]["list"]]
    assert len(asked) > 5
    known = sample_names(page)
    if name == "delay":
        known |= sample_names("".join(lines(DelayHealth().table())))
    assert used(" ".join(asked)) - known == set()


def test_alerts_use_only_existing_metrics(page: str) -> None:
    rules = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    asked = [line for line in rules.splitlines() if " group " not in line]
    assert rules.count("- alert:") == 8
    assert used(" ".join(asked)) - sample_names(page) == set()


def used(text: str) -> set[str]:
    return set(re.findall(r"\b(?:kafka|penstock|process|python|consumer)_[a-z_]+\b", text))


def sample_names(page: str) -> set[str]:
    found = parsed(page)
    families = set(found) - {each for each, (kind, _, _) in found.items() if kind == "histogram"}
    return families | {name for _, _, samples in found.values() for name, _ in samples}


def test_each_api_has_a_latency_histogram(page: str) -> None:
    kind, _, samples = parsed(page)["penstock_request_seconds"]
    assert kind == "histogram"
    counts = {
        dict(labels)["request"]: value
        for (name, labels), value in samples.items()
        if name.endswith("_count")
    }
    assert counts["Produce"] == 3
    assert counts["OffsetCommit"] == 1
    bounds = {
        dict(labels)["le"]: value
        for (name, labels), value in samples.items()
        if name.endswith("_bucket") and dict(labels)["request"] == "Produce"
    }
    assert bounds["+Inf"] == 3
    assert list(bounds.values()) == sorted(bounds.values())


def test_a_refused_batch_is_counted_as_failed() -> None:
    with EmbeddedBroker(settings={"message.max.bytes": "1000"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        failed: list[KafkaError | None] = []
        for size in (10, 5000):
            producer.produce("t", b"x" * size, on_delivery=lambda e, _: failed.append(e))
            assert producer.flush(10) == 0
        with urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
            found = parsed(response.read().decode())
    assert [each is None for each in failed] == [True, False]
    assert list(found[f"{TOPIC}_failedproducerequests_total"][2].values()) == [1]
