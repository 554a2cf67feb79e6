"""Clients push their metrics, and `/metrics` shows them (KIP-714)."""

import time
import urllib.request
from collections.abc import Iterator

import cramjam
import pytest
from confluent_kafka import Producer

from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.types import NO_UUID
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from penstock.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from support.brokers.wire_link import WireLink

CLIENT_METRICS = 16
SETTINGS = {"penstock.http.listen": "127.0.0.1:0", "telemetry.max.bytes": "100000"}
SET, DELETE = 0, 1


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def link(broker: EmbeddedBroker) -> Iterator[WireLink]:
    with WireLink(broker.bootstrap) as connected:
        yield connected


def subscribe(link: WireLink, name: str, **texts: str | None) -> AlterConfigsResourceResponse:
    configs = [
        AlterableConfig(key.replace("_", "."), DELETE if text is None else SET, text)
        for key, text in texts.items()
    ]
    resource = AlterConfigsResource(CLIENT_METRICS, name, configs)
    response = link.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return response.responses[0]


def asked(link: WireLink) -> GetTelemetrySubscriptionsResponse:
    response = link.ask(GetTelemetrySubscriptionsRequest())
    assert isinstance(response, GetTelemetrySubscriptionsResponse)
    return response


def pushed(
    link: WireLink,
    to: GetTelemetrySubscriptionsResponse,
    metrics: bytes = b"",
    compression: int = 0,
    subscription: int | None = None,
) -> int:
    response = link.ask(
        PushTelemetryRequest(
            to.client_instance_id,
            to.subscription_id if subscription is None else subscription,
            compression_type=compression,
            metrics=metrics,
        )
    )
    assert isinstance(response, PushTelemetryResponse)
    return response.error_code


def page(broker: EmbeddedBroker) -> str:
    with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
        return str(response.read(), "utf-8")


def test_clients_push_nothing_before_there_is_a_subscription(link: WireLink) -> None:
    def listed() -> set[int]:
        response = link.ask(ApiVersionsRequest("test", "1"))
        assert isinstance(response, ApiVersionsResponse)
        return {each.api_key for each in response.api_keys} & {71, 72}

    assert listed() == set()
    subscribe(link, "first", metrics="*")
    assert listed() == {71, 72}
    subscribe(link, "first", metrics=None)
    assert listed() == set()


def test_librdkafkas_metrics_are_shown(broker: EmbeddedBroker, link: WireLink) -> None:
    answer = subscribe(link, "all", metrics="*", interval_ms="100", match="client_id=observed")
    assert answer.error_code == ErrorCode.NONE
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "observed",
            "enable.metrics.push": True,
            "log_level": 0,
        }
    )
    deadline = time.monotonic() + 30
    wanted = 'kafka_client_producer_connection_creation_total{client_id="observed"'
    while wanted not in page(broker):
        assert time.monotonic() < deadline, page(broker)[-2000:]
        producer.produce("t", b"x")
        producer.flush(5)
    subscribe(link, "all", metrics=None, interval_ms=None, match=None)


def test_subscriptions_are_listed_described_and_deleted(link: WireLink) -> None:
    listed = ListConfigResourcesRequest(resource_types=[CLIENT_METRICS])
    describe = DescribeConfigsRequest(resources=[DescribeConfigsResource(CLIENT_METRICS, "s")])
    subscribe(link, "s", metrics="org.apache.kafka.producer", interval_ms="5000")
    for version in (0, 1):
        resources = link.ask(listed, version)
        assert isinstance(resources, ListConfigResourcesResponse)
        assert [each.resource_name for each in resources.config_resources] == ["s"]
    described = link.ask(describe)
    assert isinstance(described, DescribeConfigsResponse)
    assert {
        each.name: (each.value, each.config_source) for each in described.results[0].configs
    } == {
        "metrics": ("org.apache.kafka.producer", 7),
        "interval.ms": ("5000", 7),
        "match": ("", 5),
    }
    subscribe(link, "s", metrics=None, interval_ms=None)
    resources = link.ask(listed)
    assert isinstance(resources, ListConfigResourcesResponse)
    assert resources.config_resources == []


@pytest.mark.parametrize(
    ("name", "configs", "why"),
    [
        ("", {"metrics": "*"}, "Subscription name can't be empty"),
        ("s", {"interval_ms": "99"}, "Invalid value 99 for interval.ms, interval must be"),
        ("s", {"speed": "1"}, "Unknown client metrics configuration: speed"),
        ("s", {"match": "client_id"}, "Illegal client matching pattern: client_id"),
        ("s", {"match": "color=red"}, "Illegal client matching pattern: color=red"),
        ("s", {"match": "client_id=("}, "Illegal client matching pattern"),
    ],
)
def test_an_invalid_subscription_is_refused(
    link: WireLink, name: str, configs: dict[str, str], why: str
) -> None:
    answer = subscribe(link, name, **configs)
    assert answer.error_code in {ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG}
    assert why in (answer.error_message or "")


def test_a_refused_push_is_answered_with_the_reason(link: WireLink) -> None:
    first = asked(link)
    assert first.client_instance_id != NO_UUID
    assert (first.push_interval_ms, first.requested_metrics) == (300_000, [])
    assert first.telemetry_max_bytes == 100_000
    assert first.accepted_compression_types == [4, 3, 1, 2]
    assert pushed(link, first, subscription=-1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert pushed(link, first) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert pushed(link, asked(link), compression=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert pushed(link, asked(link), bytes(100_001)) == ErrorCode.TELEMETRY_TOO_LARGE
    bomb = bytes(cramjam.zstd.compress(bytes(10_000_000)))
    assert pushed(link, asked(link), bomb, compression=4) == ErrorCode.TELEMETRY_TOO_LARGE
    assert pushed(link, asked(link), b"\xff\xff") == ErrorCode.INVALID_RECORD
    assert pushed(link, asked(link), b"\x00", compression=4) == ErrorCode.INVALID_RECORD
    nobody = GetTelemetrySubscriptionsResponse()
    assert pushed(link, nobody) == ErrorCode.INVALID_REQUEST
