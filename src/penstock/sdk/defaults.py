"""Defaults: where librdkafka's differ from Kafka's own, ours are Kafka's.

Settings of the caller pass through unchanged.
"""

from collections.abc import Mapping
from typing import Any, Final

Config = Mapping[str, Any]
"""librdkafka's settings by name."""

CONNECTION: Final = (
    "bootstrap.servers",
    "broker.address",
    "client.id",
    "debug",
    "enable.ssl",
    "log_level",
    "oauth_cb",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
)

NOT_IDEMPOTENT: Final = {"acks", "request.required.acks", "retries", "message.send.max.retries"}
"""A caller that sets one of these may not want idempotence (KIP-679)."""

IN_FLIGHT: Final = ("max.in.flight", "max.in.flight.requests.per.connection")
"""Two names of one setting."""


def producer_config(config: Config) -> dict[str, Any]:
    """Java's partitioner, and idempotence unless a setting conflicts with it."""
    ours: dict[str, Any] = {"partitioner": "murmur2_random"}
    in_order = config.get("queuing.strategy", "fifo") == "fifo"
    in_order = in_order and all(int(config.get(each, 5)) <= 5 for each in IN_FLIGHT)
    if in_order and not NOT_IDEMPOTENT & config.keys():
        ours["enable.idempotence"] = True
    return ours | dict(config)


def consumer_config(config: Config) -> dict[str, Any]:
    """Offsets are stored once records are processed, not when librdkafka hands them over."""
    return {"auto.offset.reset": "latest", **config, "enable.auto.offset.store": False}


def connection_settings(config: Config) -> dict[str, Any]:
    """The settings that every client of the cluster needs; librdkafka warns of settings for another
    kind of client.
    """
    return {name: value for name, value in config.items() if name.startswith(CONNECTION)}
