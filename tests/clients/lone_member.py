"""A member of a group in a separate process: `LIBRARY BOOTSTRAP GROUP TOPIC JSON`.

It prints how many partitions it owns whenever that changes, until it is killed. The JSON has
Kafka's names for a consumer's settings. A topic that begins with `^` is a pattern. Programs in
other languages do the same with their libraries: `LoneMember.java`, `member.go`, `member.js`.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

Library = Literal["librdkafka", "kafka-python", "aiokafka"]
Tell = Callable[[int], None]
"""Reports how many partitions are owned."""
Poll = Callable[[], object]
"""Polls for a short time, and reports."""


def librdkafka(
    bootstrap: str, group: str, topic: str, settings: Mapping[str, Any], tell: Tell
) -> Poll:
    from confluent_kafka import Consumer

    own = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    consumer = Consumer({**own, **settings})
    consumer.subscribe([topic])

    def poll() -> None:
        consumer.poll(0.1)
        tell(len(consumer.assignment()))

    return poll


def wanted(topic: str) -> dict[str, Any]:
    """librdkafka recognizes a pattern by its first letter; the others need another argument."""
    return {"pattern": topic} if topic.startswith("^") else {"topics": [topic]}


def kafka_python(
    bootstrap: str, group: str, topic: str, settings: Mapping[str, Any], tell: Tell
) -> Poll:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition

    class Teller(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
        held: frozenset[TopicPartition] = frozenset()

        def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
            self.held |= frozenset(assigned)
            tell(len(self.held))

        def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
            self.held -= frozenset(revoked)
            tell(len(self.held))

    given = {name.replace(".", "_"): value for name, value in settings.items()}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **given)
    consumer.subscribe(**wanted(topic), listener=Teller())
    # One long poll: version 3.0.12 loses, for ever, an assignment that comes between two polls.
    return lambda: consumer.poll(3_600_000)


def aiokafka(
    bootstrap: str, group: str, topic: str, settings: Mapping[str, Any], tell: Tell
) -> Poll:
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

    def poll() -> None:
        loop.run_until_complete(consumer.getmany(timeout_ms=100))
        tell(len(consumer.assignment()))

    return poll


LIBRARIES: dict[Library, Callable[[str, str, str, Mapping[str, Any], Tell], Poll]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def main(library: Library, bootstrap: str, group: str, topic: str, settings: str) -> None:
    held = -1

    def tell(now: int) -> None:
        nonlocal held
        if now != held:
            held = now
            print(held, flush=True)

    poll = LIBRARIES[library](bootstrap, group, topic, json.loads(settings), tell)
    while True:
        poll()


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]  # who starts it names a library
