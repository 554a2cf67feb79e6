"""The names of Kafka's client settings: those with an effect here, and those without."""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.config.unknown import unknown

EFFECTIVE: Final = frozenset(
    [
        "acks",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "bootstrap.servers",
        "client.id",
        "compression.type",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "transaction.timeout.ms",
        "transactional.id",
    ]
)
WITHOUT_EFFECT: Final = frozenset(
    [
        "allow.auto.create.topics",
        "batch.size",
        "bootstrap.controllers",
        "bootstrap.resolve.timeout.ms",
        "buffer.memory",
        "buffer.memory.allocation.strategy",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.request.size",
        "metadata.cluster.check.enable",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "partitioner.rack.aware",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    ]
)
CHECKED_ELSEWHERE: Final = ("ssl.", "sasl.", "security.", "config.providers", "penstock.")
"""Unknown security settings of a connection are refused elsewhere; the others are for services."""


def no_effect_warnings(names: Iterable[str]) -> Iterator[str]:
    """A message about each setting that has no effect."""
    for name in dict.fromkeys(names):
        if name in EFFECTIVE or name.startswith(CHECKED_ELSEWHERE):
            continue
        if name in WITHOUT_EFFECT:
            yield f"{name} has no effect here"
        else:
            yield str(unknown(name, EFFECTIVE | WITHOUT_EFFECT))
