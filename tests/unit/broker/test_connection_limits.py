"""Which new connections are opened, delayed or closed."""

from collections import Counter

import pytest

from penstock.broker.net import connection_limits
from penstock.broker.net.connection_limits import (
    SLOT_WAIT_MS,
    ConnectionLimits,
    ListenerLimits,
    listener_limits,
)
from penstock.broker.quotas.limits import Limits, QuotaType
from penstock.broker.quotas.rate import Rate
from penstock.config.network import NetworkConfig
from penstock.config.value import INT_MAX
from penstock.metadata.client_entity import DEFAULT, ClientEntity

NONE = ListenerLimits()


def limits(*listeners: str) -> ConnectionLimits:
    made = ConnectionLimits(11, 1, "BROKERS")
    for each in listeners:
        made.add_listener(each)
    return made


def test_over_max_connections_clients_wait_and_brokers_do_not() -> None:
    network = NetworkConfig(max_connections=2)
    both = limits("CLIENTS", "BROKERS")
    for _ in range(2):
        assert both.wait_ms("CLIENTS", network, NONE, 0) == 0
        both.opened("CLIENTS", "10.0.0.1")
    assert both.wait_ms("CLIENTS", network, NONE, 0) == SLOT_WAIT_MS
    assert both.wait_ms("BROKERS", network, NONE, 0) == 0
    both.closed("CLIENTS", "10.0.0.1")
    assert both.wait_ms("CLIENTS", network, NONE, 0) == 0


def test_a_new_connection_is_not_compared_with_those_of_every_address() -> None:
    """With ten thousand addresses, each new connection would take 70 us more."""

    class Addresses(Counter[str]):
        def total(self) -> int:
            raise AssertionError("adds up the connections of all addresses")

    some = limits("CLIENTS")
    some.by_ip = Addresses()
    some.opened("CLIENTS", "10.0.0.1")
    assert some.wait_ms("CLIENTS", NetworkConfig(max_connections=1), NONE, 0) == SLOT_WAIT_MS


def test_the_only_listener_is_not_protected() -> None:
    alone = limits("BROKERS")
    alone.opened("BROKERS", "10.0.0.1")
    assert alone.wait_ms("BROKERS", NetworkConfig(max_connections=1), NONE, 0) == SLOT_WAIT_MS


def test_a_listener_has_limits_of_its_own() -> None:
    texts = {
        "listener.name.clients.max.connections": "1",
        "listener.name.clients.max.connection.creation.rate": "5",
        "listener.name.brokers.max.connections": "many",
    }
    own = listener_limits(texts, "CLIENTS")
    assert own == (1, 5)
    assert listener_limits(texts, "BROKERS") == (INT_MAX, INT_MAX)
    both = limits("CLIENTS", "BROKERS")
    both.opened("CLIENTS", "10.0.0.1")
    assert both.wait_ms("CLIENTS", NetworkConfig(), own, 0) == SLOT_WAIT_MS
    assert both.wait_ms("BROKERS", NetworkConfig(), own, 0) == 0, "its own count"


def test_over_the_rate_new_connections_wait_a_second_at_most() -> None:
    network = NetworkConfig(max_connection_creation_rate=2)
    both = limits("CLIENTS", "BROKERS")
    for _ in range(20):
        assert both.wait_ms("CLIENTS", network, NONE, 0) == 0
        both.accepted("CLIENTS", 0)
    both.accepted("CLIENTS", 0)
    assert both.wait_ms("CLIENTS", network, NONE, 0) == 500
    assert both.wait_ms("BROKERS", network, NONE, 0) == 0
    for _ in range(50):
        both.accepted("CLIENTS", 0)
    assert both.wait_ms("CLIENTS", network, NONE, 0) == 1000
    none = NetworkConfig(max_connection_creation_rate=0)
    assert both.wait_ms("CLIENTS", none, NONE, 99_000) == 1000
    assert both.waits["CLIENTS"].mean_ms(99_000) == 1000
    assert both.ip_waits["CLIENTS"].mean_ms(99_000) == 0


def test_an_address_over_its_quota_is_delayed_and_not_counted() -> None:
    key = "connection_creation_rate"
    quotas = Limits(
        QuotaType.CONNECTION,
        {ClientEntity(ip="10.0.0.1"): {key: "2"}, ClientEntity(ip=DEFAULT): {key: "1"}},
    )
    some = limits("CLIENTS")
    held = [some.ip_throttle_ms("CLIENTS", "10.0.0.1", quotas, 0) for _ in range(23)]
    assert held == [0] * 20 + [500] * 3
    assert some.ip_waits["CLIENTS"].mean_ms(0) == 500
    assert some.waits["CLIENTS"].mean_ms(0) == 0
    assert some.ip_throttle_ms("CLIENTS", "10.0.0.2", quotas, 0) == 0
    assert some.ip_throttle_ms("CLIENTS", "10.0.0.1", Limits(QuotaType.CONNECTION, {}), 0) == 0


def test_an_address_has_a_connection_limit() -> None:
    network = NetworkConfig(max_connections_per_ip=1, max_connections_per_ip_overrides="10.0.0.2:2")
    some = limits("CLIENTS")
    for ip in ("10.0.0.1", "10.0.0.2"):
        assert some.has_room(ip, network)
        some.opened("CLIENTS", ip)
    assert not some.has_room("10.0.0.1", network)
    assert some.has_room("10.0.0.2", network)


@pytest.mark.pure
def test_many_addresses_are_scanned_once_per_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    class CountedRate(Rate):
        def is_idle(self, now_ms: int) -> bool:
            nonlocal looks
            looks += 1
            return super().is_idle(now_ms)

    monkeypatch.setattr(connection_limits, "Rate", CountedRate)
    monkeypatch.setattr(connection_limits, "MOST_ADDRESSES", 10)
    made = limits("CLIENTS")
    quota = {ClientEntity(ip=DEFAULT): {"connection_creation_rate": "5"}}
    bounds = Limits(QuotaType.CONNECTION, quota)
    for number in range(30):
        made.ip_throttle_ms("CLIENTS", f"10.0.0.{number}", bounds, 0)
    assert looks == 10
