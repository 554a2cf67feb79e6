"""The Kafka client's settings that source and sink share, read from `kafka.` options."""

from dataclasses import dataclass, field
from typing import Final

from penstock.client.address import Address, parse_addresses
from penstock.spark.client.security import SECURITY, Security, read_security
from penstock.spark.options import MAX_INT32, SUPPORTED, NoEffect, Options, Use

_OWN_PACE: Final = NoEffect("this client manages its connections and retries itself")
_NO_METRICS: Final = NoEffect("Spark shows the progress; there is no JMX here")

CLIENT: Final[dict[str, Use]] = {
    "bootstrap.servers": SUPPORTED,
    "client.id": SUPPORTED,
    "request.timeout.ms": SUPPORTED,
    "default.api.timeout.ms": SUPPORTED,
    "socket.connection.setup.timeout.ms": SUPPORTED,
    "receive.buffer.bytes": SUPPORTED,
    "send.buffer.bytes": SUPPORTED,
    "socket.connection.setup.timeout.max.ms": _OWN_PACE,
    "client.dns.lookup": NoEffect("every address of a name is tried"),
    "connections.max.idle.ms": _OWN_PACE,
    "metadata.max.age.ms": NoEffect("metadata is refreshed whenever something has moved"),
    "metadata.recovery.strategy": NoEffect(
        "if no known broker answers, the bootstrap servers are tried"
    ),
    "metadata.recovery.rebootstrap.trigger.ms": _OWN_PACE,
    "reconnect.backoff.ms": _OWN_PACE,
    "reconnect.backoff.max.ms": _OWN_PACE,
    "retry.backoff.ms": _OWN_PACE,
    "retry.backoff.max.ms": _OWN_PACE,
    "interceptor.classes": NoEffect("there is no Java class to load"),
    "metric.reporters": _NO_METRICS,
    "metrics.num.samples": _NO_METRICS,
    "metrics.recording.level": _NO_METRICS,
    "metrics.sample.window.ms": _NO_METRICS,
    "auto.include.jmx.reporter": _NO_METRICS,
    "enable.metrics.push": _NO_METRICS,
    **SECURITY,
}
"""Options by name, without `kafka.`; source and sink add those of consumer and producer."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How to reach the cluster. A plain value, which Spark sends to executors."""

    bootstrap: tuple[Address, ...]
    client_id: str = "penstock-spark"
    security: Security = field(default_factory=Security)
    timeout_ms: int = 60_000
    """Time-out of an operation with all its retries: `default.api.timeout.ms`."""
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1
    """-1: the system's default."""


def read_client_settings(options: Options, *, client_id: str = "penstock-spark") -> ClientSettings:
    return ClientSettings(
        bootstrap=tuple(parse_addresses(options.required("kafka.bootstrap.servers"))),
        client_id=options.text("kafka.client.id", client_id),
        security=read_security(options),
        timeout_ms=options.integer("kafka.default.api.timeout.ms", 60_000, low=1, high=MAX_INT32),
        request_timeout_ms=options.integer(
            "kafka.request.timeout.ms", 30_000, low=1, high=MAX_INT32
        ),
        connect_timeout_ms=options.integer(
            "kafka.socket.connection.setup.timeout.ms", 10_000, low=1, high=MAX_INT32
        ),
        receive_buffer_bytes=options.integer(
            "kafka.receive.buffer.bytes", -1, low=-1, high=MAX_INT32
        ),
        send_buffer_bytes=options.integer("kafka.send.buffer.bytes", -1, low=-1, high=MAX_INT32),
    )
