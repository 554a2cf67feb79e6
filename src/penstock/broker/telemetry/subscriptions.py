"""The metrics that a client should push: the union of all matching subscriptions. Pure."""

import zlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

from penstock.config.client_metrics import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    ClientMetricsConfig,
    client_metrics_config,
    patterns,
)
from penstock.config.regex import matching
from penstock.errors import ConfigError, KafkaError
from penstock.metadata.image import Configs
from penstock.types import Uuid


class TelemetrySubscription(Struct, frozen=True):
    """The metrics that one client should push. `id` changes with the rest."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int

    def asks_for(self, name: str) -> bool:
        """Whether the client should push the metric; `metrics` are name prefixes."""
        return ALL_METRICS in self.metrics or name.startswith(self.metrics)


def subscription_of(
    attributes: Mapping[str, str], client: Uuid, configured: Iterable[Configs]
) -> TelemetrySubscription:
    """The metrics of all matching subscriptions, at the shortest of their intervals."""
    found = [
        config
        for each in configured
        if (config := client_metrics_config(each)).metrics and matches(config, attributes)
    ]
    prefixes = {prefix for config in found for prefix in config.metrics}
    metrics = (ALL_METRICS,) if ALL_METRICS in prefixes else tuple(sorted(prefixes))
    interval_ms = min((config.interval_ms for config in found), default=DEFAULT_INTERVAL_MS)
    checksum = zlib.crc32(f"{metrics} {interval_ms}".encode() + client)
    return TelemetrySubscription(checksum & 0x7FFF_FFFF, metrics, interval_ms)


def matches(config: ClientMetricsConfig, attributes: Mapping[str, str]) -> bool:
    """Whether every expression matches; an invalid expression matches no client."""
    try:
        return all(
            matching(expression, [attributes[name]])
            for name, expression in patterns(config).items()
        )
    except (ConfigError, KafkaError):
        return False
