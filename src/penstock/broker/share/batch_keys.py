"""Reads the keys of a log's records, for share groups that keep the order of keys.

A batch may be far larger decompressed than on disk, and its producer decides that. So each loop
turn reads a limited amount, over all partitions of a fetch; a larger batch is read on another
thread, one per share-partition.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from hashlib import sha256
from typing import Final, NamedTuple

from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES, LogSlice
from penstock.record.batch import BatchHeader, CorruptBatch, payload
from penstock.record.compression import DecompressionLimit
from penstock.record.invalid import InvalidRecord
from penstock.record.record import records_of_payload

TURN_BYTES: Final = 1 << 18
TURN_BATCHES: Final = 5_000
"""Bytes decompressed for keys, and headers of batches read, in one loop turn: some ten milliseconds
each.
"""
MOST_KEYS: Final = 10_000
"""Keys read from a batch at a time: as many as a share-partition may have in flight. The batch is
read again for the next ones.
"""
HASH_BYTES: Final = sha256().digest_size


class KnownKeys(NamedTuple):
    """Keys by offset of the records up to `last`. Long keys are replaced by their hash, since
    thousands of keys are held.
    """

    by_offset: Mapping[int, bytes]
    last: int
    size_bytes: int
    """How many bytes were read for it."""


def read_keys(batch: bytes, header: BatchHeader, known_to: int, limit_bytes: int) -> KnownKeys:
    """The keys from `known_to` on; none of a broken batch. Raises `DecompressionLimit` if the batch
    is larger than `limit_bytes`; at the largest limit there is, it returns no keys instead.
    """
    last = min(header.last_offset, max(known_to, header.base_offset) + MOST_KEYS - 1)
    found: dict[int, bytes] = {}
    try:
        data = payload(batch, header, limit_bytes)
        for each in records_of_payload(data, header):
            if each.offset > last:
                break
            if each.key is not None and each.offset >= known_to:
                is_long = len(each.key) > HASH_BYTES
                found[each.offset] = sha256(each.key).digest() if is_long else bytes(each.key)
    except DecompressionLimit:
        if limit_bytes < DECOMPRESSED_LIMIT_BYTES:
            raise
        return KnownKeys({}, header.last_offset, limit_bytes)
    except (CorruptBatch, InvalidRecord):
        return KnownKeys({}, header.last_offset, header.size_bytes)
    return KnownKeys(found, last, len(data))


class TurnBudget:
    """What one loop turn may still read for a fetch, over all its partitions."""

    def __init__(self) -> None:
        self.batches, self.key_bytes = TURN_BATCHES, TURN_BYTES


class LargeBatch(NamedTuple):
    """A batch that is read on another thread."""

    base_offset: int
    known_to: int
    reading: asyncio.Future[KnownKeys]


class BatchKeys:
    """Reads keys for one share-partition. Calls `on_read` when a read on another thread is done."""

    def __init__(self, on_read: Callable[[], object]) -> None:
        self._on_read = on_read
        self._large: LargeBatch | None = None

    def turn(self, worker: Executor, budget: TurnBudget) -> "KeyTurn":
        return KeyTurn(self, worker, budget)

    def taken(self, header: BatchHeader, known_to: int) -> KnownKeys | LargeBatch | None:
        """The result or the running read of this batch on another thread, if there is one."""
        large = self._large
        if large is None or large[:2] != (header.base_offset, known_to):
            return None
        if not large.reading.done():
            return large
        self._large = None
        return large.reading.result()

    def read_off_loop(
        self, worker: Executor, batch: bytes, header: BatchHeader, known_to: int
    ) -> None:
        reading = asyncio.get_running_loop().run_in_executor(
            worker, read_keys, batch, header, known_to, DECOMPRESSED_LIMIT_BYTES
        )
        self._large = LargeBatch(header.base_offset, known_to, reading)
        reading.add_done_callback(lambda _: self._on_read())


class KeyTurn:
    """The reads of one share-partition in one loop turn."""

    def __init__(self, keys: BatchKeys, worker: Executor, budget: TurnBudget) -> None:
        self._keys, self._worker, self._budget = keys, worker, budget

    def read(
        self, found: LogSlice, position: int, header: BatchHeader, known_to: int
    ) -> KnownKeys | None:
        """The keys; None if they come later, which then holds for all following batches too."""
        taken = self._keys.taken(header, known_to)
        if taken is not None:
            return None if isinstance(taken, LargeBatch) else taken
        left, self._budget.key_bytes = self._budget.key_bytes, 0
        is_first = left == TURN_BYTES
        if header.size_bytes > left and not is_first:
            return None
        batch = found.file.read(found.position + position, header.size_bytes)
        try:
            if header.size_bytes <= left:
                known = read_keys(batch, header, known_to, left)
                self._budget.key_bytes = max(left - known.size_bytes, 0)
                return known
        except DecompressionLimit:
            if not is_first:
                return None
        self._keys.read_off_loop(self._worker, batch, header, known_to)
        return None
