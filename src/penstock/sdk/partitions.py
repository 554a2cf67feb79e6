"""The number of partitions of a topic, for partitioners: asked once, and again after a while."""

from typing import Any, Final

from penstock.clock import Clock
from penstock.sdk.errors import SdkError

REFRESH_MS: Final = 300_000
"""Kafka's metadata.max.age.ms."""
TIMEOUT_S: Final = 10.0


class PartitionCounts:
    """Asks the cluster through a producer. A lookup waits for the answer."""

    def __init__(self, producer: Any, clock: Clock) -> None:
        self._producer, self._clock = producer, clock
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, topic: str) -> int:
        now_ms = self._clock.monotonic_ms()
        known = self._known.get(topic)
        if known is None or now_ms - known[1] >= REFRESH_MS:
            found = self._producer.list_topics(topic, TIMEOUT_S).topics[topic]
            if not found.partitions:
                raise SdkError(f"the partitions of {topic} are unknown: {found.error}")
            known = self._known[topic] = len(found.partitions), now_ms
        return known[0]
