"""Hints for old and misspelt settings of clients: the name that is meant today."""

import sys
from collections.abc import Iterable
from typing import Final

CLIENT_HINTS: Final = {
    "request.required.acks": "acks",
    "compress.type": "compression.type",
    "compression.codec": "compression.type",
    "transaction.id": "transactional.id",
    "transaction.id.timeout.ms": "transaction.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "broker.list": "bootstrap.servers",
    "serializer.class": "value.serializer",
    "key.serializer.class": "key.serializer",
    "message.send.max.retries": "retries",
    "queue.buffering.max.ms": "linger.ms",
    "batch.num.messages": "batch.size",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "auto.commit.enable": "enable.auto.commit",
    "consumer.timeout.ms": "--timeout-ms of the console consumer",
    "zookeeper.connect": "bootstrap.servers",
}
"""Settings of old clients, and misspellings that documents repeat."""

OLD_RESETS: Final = {"smallest": "earliest", "largest": "latest"}


def hint(names: Iterable[str], about: str) -> None:
    """Say on standard error which settings have another name today."""
    for name in names:
        if name in CLIENT_HINTS:
            print(
                f"{about}: {name} is not a setting; did you mean {CLIENT_HINTS[name]}?",
                file=sys.stderr,
            )
