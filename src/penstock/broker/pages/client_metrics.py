"""Metrics that clients push to this broker (KIP-714), as `kafka_client_…`."""

from collections.abc import Callable, Iterator

from penstock.broker.telemetry.clients import Series, TelemetryClients
from penstock.clock import Clock
from penstock.http.prometheus import Metric, Sample, counter, gauge


def client_metrics(telemetry: TelemetryClients, clock: Clock) -> dict[str, Metric]:
    telemetry.remove_inactive(clock.now_ms())
    found: dict[str, list[Series]] = {}
    for name, series in telemetry.by_name():
        found.setdefault(name, []).append(series)

    def read(named: list[Series]) -> Callable[[], Iterator[Sample]]:
        return lambda: (Sample(each.value, each.labels) for each in named)

    table = {
        "penstock_telemetry_clients": gauge(
            "Clients that asked for a subscription to their metrics.",
            lambda: len(telemetry.clients),
        ),
        "penstock_telemetry_dropped_total": counter(
            "Numbers pushed by clients and left out: too many, or not asked for.",
            lambda: telemetry.dropped,
        ),
    }
    for name, named in sorted(found.items()):
        kind = counter if named[0].is_counter else gauge
        table[name] = kind("Pushed by clients.", read(named))
    return table
