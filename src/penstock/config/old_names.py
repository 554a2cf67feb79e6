"""Names of settings in old releases and common misspellings, with today's names."""

from typing import Final

OLD_NAMES: Final = {
    "auto.commit.enable": "enable.auto.commit",
    "batch.num.messages": "batch.size",
    "broker.list": "bootstrap.servers",
    "compress.type": "compression.type",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "key.serializer.class": "key.serializer",
    "log.cleanup.interval.mins": "log.retention.check.interval.ms",
    "log.file.size": "log.segment.bytes",
    "max.message.size": "message.max.bytes",
    "max.transaction.timeout.ms": "transaction.max.timeout.ms",
    "message.send.max.retries": "retries",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "replica.lag.time.ms": "replica.lag.time.max.ms",
    "request.required.acks": "acks",
    "serializer.class": "value.serializer",
    "transaction.id": "transactional.id",
    "transaction.id.timeout.ms": "transactional.id.expiration.ms",
}
