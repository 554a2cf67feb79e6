"""Chooses a record's partition: by its key as in the Java client, else sticky (KIP-480)."""

from collections.abc import Sequence

from penstock.client.murmur2 import murmur2


def keyed_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Partitions records without keys: fills a batch for one partition, then takes the next."""

    def __init__(self, batch_bytes: int, turn: int) -> None:
        self._batch_bytes, self._turn = batch_bytes, turn
        self._filled_bytes = 0

    def next(self, partitions: Sequence[int], size_bytes: int) -> int:
        """The partition for a record of this size, out of those that have a leader."""
        if self._filled_bytes and self._filled_bytes + size_bytes > self._batch_bytes:
            self.turn()
        self._filled_bytes += size_bytes
        return partitions[self._turn % len(partitions)]

    def turn(self) -> None:
        """Take the next partition: the batch of this one was sent."""
        self._turn += 1
        self._filled_bytes = 0
