"""Which partition a record goes to: by its key as in the Java client, else spread in batches."""

from collections.abc import Sequence

from penstock.client.murmur2 import murmur2


def keyed_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Records of one topic without keys: a batch for one partition, then on to the next."""

    def __init__(self, batch_bytes: int, turn: int) -> None:
        self._batch_bytes, self._turn = batch_bytes, turn
        self._filled_bytes = 0

    def next(self, partitions: Sequence[int], size_bytes: int) -> int:
        """Where a record of this size goes, out of those that can take one."""
        if self._filled_bytes and self._filled_bytes + size_bytes > self._batch_bytes:
            self.turn()
        self._filled_bytes += size_bytes
        return partitions[self._turn % len(partitions)]

    def turn(self) -> None:
        """What has been placed is on its way: go on to the next partition."""
        self._turn += 1
        self._filled_bytes = 0
