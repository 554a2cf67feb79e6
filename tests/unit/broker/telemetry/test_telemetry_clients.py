"""When a client may fetch its subscription and push, and which of its metrics are stored."""

import pytest

from penstock.broker.telemetry import clients
from penstock.broker.telemetry.clients import (
    TelemetryClients,
    TooEarly,
    UnknownSubscriptionId,
)
from penstock.broker.telemetry.otlp import DataPoint
from penstock.broker.telemetry.subscriptions import TelemetrySubscription, subscription_of
from penstock.errors import InvalidRequest
from penstock.types import Uuid

ID = Uuid(b"a" * 16)
EVERY_SECOND = TelemetrySubscription(5, ("*",), 1000)


def point(name: str = "org.apache.kafka.x.total", value: float = 1, **traits: str) -> DataPoint:
    return DataPoint(name, tuple(traits.items()), value, is_counter=True, is_delta=False)


def test_a_client_pushes_once_per_interval() -> None:
    client = TelemetryClients().client(ID, "c", EVERY_SECOND)
    client.ask(0)
    client.push(5, 10, terminating=False)
    with pytest.raises(TooEarly):
        client.push(5, 1009, terminating=False)
    with pytest.raises(TooEarly):
        client.ask(1009)
    client.push(5, 1010, terminating=False)
    client.push(5, 1011, terminating=True)


def test_after_an_unknown_subscription_id_a_client_may_ask_at_once() -> None:
    client = TelemetryClients().client(ID, "c", EVERY_SECOND)
    client.ask(0)
    with pytest.raises(UnknownSubscriptionId):
        client.push(6, 10, terminating=False)
    client.ask(11)
    with pytest.raises(TooEarly):
        client.ask(12)


def test_nothing_is_accepted_after_the_last_push() -> None:
    client = TelemetryClients().client(ID, "c", EVERY_SECOND)
    client.terminating = True
    with pytest.raises(InvalidRequest):
        client.push(5, 10_000, terminating=False)


def test_a_changed_subscription_restarts_the_interval() -> None:
    known = TelemetryClients()
    known.client(ID, "c", EVERY_SECOND).ask(0)
    changed = known.client(ID, "c", TelemetrySubscription(6, ("x",), 500))
    changed.ask(1)
    changed.push(6, 2, terminating=False)


def test_values_are_stored_by_name_and_labels() -> None:
    known = TelemetryClients()
    client = known.client(ID, 'c"', EVERY_SECOND)
    known.received(client, [point(value=1, topic="t"), point(value=2, topic="u")])
    known.received(client, [point(value=5, topic="t", client_id="forged")])
    known.received(client, [point(value=7, topic="t")])
    found = {(name, series.labels): series.value for name, series in known.by_name()}
    assert {name for name, _ in found} == {"kafka_client_x_total"}
    assert sorted(found.values()) == [2, 7]
    assert all('client_id="c\\""' in labels for _, labels in found)


def test_sums_since_the_last_push_are_added_up() -> None:
    known = TelemetryClients()
    client = known.client(ID, "c", EVERY_SECOND)
    delta = DataPoint("y", (), 2, is_counter=True, is_delta=True)
    known.received(client, [delta, delta])
    assert [series.value for _, series in known.by_name()] == [4]


def test_series_and_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_SERIES_PER_CLIENT", 3)
    known = TelemetryClients()
    client = known.client(ID, "c", EVERY_SECOND)
    known.received(client, [point(f"m{number}", a="x" * 1000) for number in range(10)])
    assert len(client.series) == 3
    assert known.dropped == 7
    known.received(client, [point("m0", 1, **{f"label{n}": "v" for n in range(100)})])
    assert all(len(series.labels) < 400 for _, series in known.by_name())


def test_a_long_client_id_is_not_held() -> None:
    """There may be many thousand clients, and an id has up to 32,767 characters."""
    client = TelemetryClients().client(ID, "c" * 30_000, EVERY_SECOND)
    assert client.client_id == "c" * clients.MAX_LABEL_CHARS


def test_silent_clients_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    known = TelemetryClients()
    known.client(ID, "c", EVERY_SECOND).ask(0)
    known.remove_inactive(60_000)
    assert known.clients
    known.remove_inactive(60_001)
    assert not known.clients
    monkeypatch.setattr(clients, "MAX_CLIENTS", 2)
    for number in range(4):
        known.client(Uuid(bytes([number]) * 16), "c", EVERY_SECOND)
    assert [each[0] for each in known.clients] == [2, 3]


def test_all_matching_subscriptions_are_merged() -> None:
    python = {"client_software_name": "librdkafka", "client_id": "c1"}
    configured = [
        {"metrics": "b,a", "interval.ms": "2000", "match": "client_software_name=lib.*"},
        {"metrics": "c", "interval.ms": "1000", "match": "client_id=c[0-9]"},
        {"metrics": "d", "interval.ms": "100", "match": "client_id=other"},
        {"metrics": "e", "interval.ms": "100", "match": "client_id=["},
    ]
    found = subscription_of(python, ID, configured)
    assert (found.metrics, found.interval_ms) == (("a", "b", "c"), 1000)
    assert subscription_of(python, ID, [{"metrics": "*,a"}]).metrics == ("*",)
    nothing = subscription_of(python, ID, [])
    assert (nothing.metrics, nothing.interval_ms) == ((), 300_000)
    assert len({found.id, nothing.id, subscription_of(python, Uuid(b"b" * 16), []).id}) == 3


def test_labels_in_another_order_are_the_same_series() -> None:
    """Prometheus would find a duplicate series on the page."""
    known = TelemetryClients()
    client = known.client(ID, "c", EVERY_SECOND)
    for traits in ({"a.z": "1", "a_b": "2"}, {"a.b": "2", "a_z": "1"}, {"a_b": "2", "a_z": "1"}):
        known.received(client, [point("org.apache.kafka.x.total", 1, **traits)])
    known.received(client, [point(empty="")])
    known.received(client, [point()])
    assert len(client.series) == 2


def test_metrics_without_a_subscription_are_dropped() -> None:
    """A client could otherwise fill the page."""
    known = TelemetryClients()
    for metrics, kept in (((), 0), (("org.apache.kafka.y",), 0), (("org.apache.kafka.x",), 1)):
        client = known.client(ID, "c", TelemetrySubscription(5, metrics, 1000))
        known.received(client, [point()])
        assert len(client.series) == kept
    assert known.dropped == 2


def test_a_clock_that_was_set_back_refuses_no_request() -> None:
    client = TelemetryClients().client(ID, "c", EVERY_SECOND)
    client.ask(1_000_000)
    client.push(5, 1_000_000, terminating=False)
    client.push(5, 10, terminating=False)
    client.ask(5)
