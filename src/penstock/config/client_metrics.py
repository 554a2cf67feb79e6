"""Settings of a subscription to client metrics (KIP-714)."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.config.setting import load, setting, settings
from penstock.config.stored import usable
from penstock.errors import ConfigError

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The attributes by which a subscription may match clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetricsConfig:
    """One subscription: which metrics, how often, from which clients."""

    metrics: tuple[str, ...] = setting(
        "metrics", (), "Prefixes of the names of metrics to push; `*`: all of them."
    )
    interval_ms: int = setting(
        "interval.ms", DEFAULT_INTERVAL_MS, "How often clients push.", low=100, high=3_600_000
    )
    match: tuple[str, ...] = setting(
        "match",
        (),
        "Clients to push: a regular expression each for `client_id` and other attributes; without "
        "any, all clients.",
    )


def client_metrics_config(overrides: Mapping[str, str]) -> ClientMetricsConfig:
    """A subscription from the store, without unusable settings."""
    return load(ClientMetricsConfig, usable(overrides, settings(ClientMetricsConfig)))


def patterns(config: ClientMetricsConfig) -> dict[str, str]:
    """The regular expression for each attribute that is matched."""
    found = {}
    for each in config.match:
        name, equals, expression = (part.strip() for part in each.partition("="))
        if not equals or name not in ATTRIBUTES or "=" in expression:
            raise ConfigError(f"Illegal client matching pattern: {each}")
        found[name] = expression
    return found


def check_client_metrics(overrides: Mapping[str, str]) -> ClientMetricsConfig:
    """Reject an invalid subscription, with Kafka's messages."""
    unknown = sorted(overrides.keys() - settings(ClientMetricsConfig).keys())
    if unknown:
        raise ConfigError(f"Unknown client metrics configuration: {unknown[0]}")
    interval = overrides.get("interval.ms", "")
    if interval.strip().lstrip("-").isdigit() and not 100 <= int(interval) <= 3_600_000:
        raise ConfigError(
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 "
            "(1 hour)"
        )
    config = load(ClientMetricsConfig, overrides)
    patterns(config)
    return config
