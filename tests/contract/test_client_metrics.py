"""Kafka's tools subscribe to metrics of clients, and a Java client pushes them."""

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from peers.tools import tool
from penstock.testing.broker import EmbeddedBroker

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"penstock.http.listen": "127.0.0.1:0"}) as running:
        yield running


def test_metrics_of_a_java_client_are_shown(broker: EmbeddedBroker) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    altered = tool(
        "kafka-client-metrics",
        *server,
        *("--alter", "--name", "all", "--metrics", "*", "--interval", "100"),
        *("--match", "client_software_name=apache-kafka-java"),
    )
    assert "Altered client metrics config for all." in altered.stdout
    # A client's metrics leave the page when it disconnects, so the page is read while it runs.
    numbers = ("--topic", "t", "--num-records", "60", "--record-size", "10", "--throughput", "10")
    with ThreadPoolExecutor(1) as running:
        done = running.submit(tool, "kafka-producer-perf-test", *server, *numbers)
        page = ""
        while "kafka_client_producer_" not in page and not done.done():
            with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
                page = response.read().decode()
            time.sleep(0.1)
        done.result()
    assert 'kafka_client_producer_connection_creation_total{client_id="perf-producer' in page
    described = tool("kafka-client-metrics", *server, "--describe", "--name", "all").stdout
    assert "interval.ms=100" in described
    assert "metrics=*" in described
    deleted = tool("kafka-client-metrics", *server, "--delete", "--name", "all").stdout
    assert "Deleted client metrics config for all." in deleted


def test_kafka_configs_knows_client_metrics(broker: EmbeddedBroker) -> None:
    entity = ("--entity-type", "client-metrics", "--entity-name", "some")
    server = ("--bootstrap-server", broker.bootstrap)
    settings = "metrics=[a,b],interval.ms=5000"
    altered = tool("kafka-configs", *server, "--alter", *entity, "--add-config", settings)
    assert "Completed updating config for client-metric some." in altered.stdout
    described = tool("kafka-configs", *server, "--describe", *entity).stdout
    assert "metrics=a,b" in described
    assert "interval.ms=5000" in described
    refused = tool(
        "kafka-configs",
        *(*server, "--alter", *entity, "--add-config", "interval.ms=5"),
        check=False,
    )
    assert "interval must be between 100 and 3600000 (1 hour)" in refused.stderr + refused.stdout


def test_describing_the_kraft_quorum_is_refused_as_unsupported(broker: EmbeddedBroker) -> None:
    """Penstock has no quorum: an invented response would show voters and a log that do not
    exist.
    """
    server = ("--bootstrap-server", broker.bootstrap)
    refused = tool("kafka-metadata-quorum", *server, "describe", "--status", check=False)
    assert refused.returncode == 1
    assert "does not support DESCRIBE_QUORUM" in refused.stdout + refused.stderr
