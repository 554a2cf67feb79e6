"""A member of a group in a process of its own: `LIBRARY BOOTSTRAP GROUP TOPIC JSON`.

It prints how many partitions it holds whenever that changes, until it is killed. The JSON has
Kafka's names for a consumer's settings. A topic that begins with `^` is an expression. Programs
in other languages do the same with their libraries: `LoneMember.java`, `member.go`, `member.js`.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

Library = Literal["librdkafka", "kafka-python", "aiokafka"]
Poll = Callable[[], int]
"""Polls a little, and says how many partitions are held."""


def librdkafka(bootstrap: str, group: str, topic: str, settings: Mapping[str, Any]) -> Poll:
    from confluent_kafka import Consumer

    own = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    consumer = Consumer({**own, **settings})
    consumer.subscribe([topic])

    def poll() -> int:
        consumer.poll(0.1)
        return len(consumer.assignment())

    return poll


def wanted(topic: str) -> dict[str, Any]:
    """librdkafka knows an expression by its first letter, the others want to be told."""
    return {"pattern": topic} if topic.startswith("^") else {"topics": [topic]}


def kafka_python(bootstrap: str, group: str, topic: str, settings: Mapping[str, Any]) -> Poll:
    from kafka import KafkaConsumer

    given = {name.replace(".", "_"): value for name, value in settings.items()}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **given)
    consumer.subscribe(**wanted(topic))

    def poll() -> int:
        consumer.poll(100)
        return len(consumer.assignment())

    return poll


def aiokafka(bootstrap: str, group: str, topic: str, settings: Mapping[str, Any]) -> Poll:
    import asyncio

    from aiokafka import AIOKafkaConsumer

    given = {name.replace(".", "_"): value for name, value in settings.items()}
    loop = asyncio.new_event_loop()

    async def started() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **given)
        consumer.subscribe(**wanted(topic))
        await consumer.start()
        return consumer

    consumer = loop.run_until_complete(started())

    def poll() -> int:
        loop.run_until_complete(consumer.getmany(timeout_ms=100))
        return len(consumer.assignment())

    return poll


LIBRARIES: dict[Library, Callable[[str, str, str, Mapping[str, Any]], Poll]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def main(library: Library, bootstrap: str, group: str, topic: str, settings: str) -> None:
    poll = LIBRARIES[library](bootstrap, group, topic, json.loads(settings))
    held = -1
    while True:
        now = poll()
        if now != held:
            held = now
            print(held, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]  # who starts it names a library
