"""Connections, logins and waiting requests in `/metrics`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.broker.context import Services
from penstock.broker.net.connection_limits import Waits
from penstock.broker.net.sasl import SaslListener
from penstock.broker.net.server import Server
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.http.prometheus import Metric, Sample, counter, gauge, labels
from penstock.wire.apis import APIS

SOCKETS = "kafka_server_socket_server_metrics"
PURGATORY = "kafka_server_delayedoperationpurgatory"


def server_metrics(services: Services, server: Server) -> dict[str, Metric]:
    def accept_rates() -> Iterator[Sample]:
        now_ms = services.quotas.monotonic_ms()
        for name, rate in server.limits.listener_rates.items():
            yield Sample(rate.per_second(now_ms), labels(listener=name))

    def throttled(waits: Callable[[], Mapping[str, Waits]]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            now_ms = services.quotas.monotonic_ms()
            for name, each in waits().items():
                yield Sample(each.mean_ms(now_ms), labels(listener=name))

        return samples

    def waiting() -> Iterator[Sample]:
        for name, size in services.waiters.sizes().items():
            yield Sample(size, labels(delayedOperation=name))

    return {
        **_logins(server),
        f"{SOCKETS}_connection_count": gauge("Open connections.", lambda: len(server.sessions)),
        f"{SOCKETS}_broker_connection_accept_rate": gauge(
            "New connections a second.",
            lambda: server.limits.rate.per_second(services.quotas.monotonic_ms()),
        ),
        f"{SOCKETS}_connection_accept_rate": gauge(
            "New connections a second, by listener.", accept_rates
        ),
        f"{SOCKETS}_connection_accept_throttle_time": gauge(
            "Mean milliseconds for which a listener accepted nothing because of a rate.",
            throttled(lambda: server.limits.waits),
        ),
        f"{SOCKETS}_ip_connection_accept_throttle_time": gauge(
            "Mean milliseconds for which connections waited because of their address's rate.",
            throttled(lambda: server.limits.ip_waits),
        ),
        f"{SOCKETS}_refused_connections_total": counter(
            "Connections over a limit.", lambda: server.refused_connections
        ),
        f"{PURGATORY}_size": gauge("Requests that wait.", lambda: len(services.waiters)),
        f"{PURGATORY}_purgatorysize": gauge(
            "Requests that wait, for acks, for records or for anything else.", waiting
        ),
        "kafka_server_fetchsessioncache_numincrementalfetchsessions": gauge(
            "Incremental fetch sessions.", lambda: len(services.fetch_sessions)
        ),
        "penstock_served_apis": gauge(
            "APIs of the protocol that have a handler.",
            lambda: len(services.listeners.served & APIS.keys()),
        ),
        "penstock_coordinator_unreadable_records": gauge(
            "Records of internal topics led here that were skipped because they cannot be read.",
            lambda: _unreadable(services),
        ),
    }


def _unreadable(services: Services) -> Iterator[Sample]:
    coordination = services.coordination
    runtimes: tuple[CoordinatorRuntime[Any, Any], ...] = (
        coordination.groups.runtime,
        coordination.transactions.runtime,
        services.share.coordinator.runtime,
    )
    for runtime in runtimes:
        yield Sample(runtime.unreadable_records, labels(topic=runtime.name))


def _logins(server: Server) -> dict[str, Metric]:
    def each(read: Callable[[SaslListener], int]) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for name, protection in server.protections.items():
                if protection.sasl is not None:
                    yield Sample(read(protection.sasl), labels(listener=name))

        return samples

    return {
        f"{SOCKETS}_successful_authentication_total": counter(
            "Logins on SASL listeners.", each(lambda sasl: sasl.successes)
        ),
        f"{SOCKETS}_failed_authentication_total": counter(
            "Refused logins on SASL listeners.", each(lambda sasl: sasl.failures)
        ),
        f"{SOCKETS}_successful_reauthentication_total": counter(
            "Clients that logged in again (KIP-368).", each(lambda sasl: sasl.reauthentications)
        ),
        f"{SOCKETS}_successful_authentication_no_reauth_total": counter(
            "Logins of clients that cannot log in again.",
            each(lambda sasl: sasl.without_reauthentication),
        ),
        f"{SOCKETS}_expired_connections_killed_count": gauge(
            "Connections that were closed because their login had expired.",
            each(lambda sasl: sasl.expired),
        ),
    }
