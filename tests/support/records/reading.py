"""Every record of a topic, read by a plain client."""

import time

from confluent_kafka import Consumer, Message, TopicPartition

WAIT_S = 20


def all_records(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> list[Message]:
    """Ordered by partition and offset, up to the present ends of the partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found: list[Message] = []
    ended: set[int | None] = set()
    deadline_s = time.monotonic() + WAIT_S
    while len(ended) < len(partitions):
        assert time.monotonic() < deadline_s, f"{topic} was not read to its end"
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    return sorted(found, key=lambda each: (each.partition() or 0, each.offset() or 0))
