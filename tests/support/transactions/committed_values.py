"""What a read_committed consumer sees of a topic."""

import time

from confluent_kafka import Consumer, TopicPartition

from support.transactions.stable_offsets import wait_for_markers


def committed(
    bootstrap: str, topic: str, partitions: int, *, while_open: bool = False, wait_s: float = 120
) -> list[list[str]]:
    """The values of each partition that a read_committed consumer sees.

    With `while_open`, a transaction is open during the read; otherwise all have ended.
    """
    if not while_open:
        wait_for_markers(bootstrap, topic, partitions)
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[list[str]] = [[] for _ in range(partitions)]
    reader.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    ended, deadline = 0, time.monotonic() + wait_s
    while ended < partitions and time.monotonic() < deadline:
        message = reader.poll(1)
        if message is not None and message.error():
            ended += 1
        elif message is not None:
            found[message.partition() or 0].append((message.value() or b"").decode())
    reader.close()
    assert ended == partitions
    return found
