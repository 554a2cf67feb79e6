"""Partitioners: which partition a record without an explicit one goes to.

The default is librdkafka's `murmur2_random`, which runs in C: the key's hash as Java's client
computes it, and sticky batches for records without a key. A custom partitioner is any callable with
the arguments of `Partitioner`.
"""

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.client.partitioner import StickyPartitioner, keyed_partition

Partitioner: TypeAlias = Callable[[str, bytes | None, bytes | None, int], int]
"""Topic, key, value, number of partitions → partition. Called on the sender's thread."""

BATCH_BYTES: Final = 16_384
"""Kafka's batch.size."""


def by_key(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:  # noqa: ARG001
    """Java's murmur2 of the key; partition 0 for records without one."""
    return keyed_partition(key, partitions) if key is not None else 0


class RoundRobin:
    """Each record to the next partition, whatever its key, as Java's RoundRobinPartitioner."""

    def __init__(self) -> None:
        self._turns: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

    def __call__(
        self, topic: str, _key: bytes | None, _value: bytes | None, partitions: int, /
    ) -> int:
        return next(self._turns[topic]) % partitions


class Sticky:
    """By key; records without one fill a batch of `batch_bytes` for one partition at a time."""

    def __init__(self, batch_bytes: int = BATCH_BYTES) -> None:
        self._batch_bytes = batch_bytes
        self._topics: dict[str, StickyPartitioner] = {}
        self._lock = threading.Lock()

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, /
    ) -> int:
        if key is not None:
            return keyed_partition(key, partitions)
        with self._lock:
            sticky = self._topics.get(topic)
            if sticky is None:
                first = random.randrange(partitions)  # noqa: S311  only spreads load
                sticky = self._topics[topic] = StickyPartitioner(self._batch_bytes, first)
            return sticky.next(range(partitions), len(value or b""))
