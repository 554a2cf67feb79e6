"""Gathers rows into record batches: one open batch per partition, sealed when it is full."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from penstock.record.batch import HEADER, HEADER_BYTES, LENGTH_END, MAGIC, SEQUENCES, TRANSACTIONAL
from penstock.record.compression import Codec, compress
from penstock.record.crc import crc32c
from penstock.record.stamp import seal
from penstock.spark.sink.encode import RecordColumns, append
from penstock.types import TopicPartition

FIRST_BYTES: Final = 16 * 1024
"""Size of a partition's first buffer, so that many small partitions cost little."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Producer id and epoch in the batches; -1 without idempotence."""

    producer_id: int = -1
    producer_epoch: int = -1
    transactional: bool = False

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0


@dataclass(frozen=True, slots=True)
class SealedBatch:
    """A batch that never changes again: a retry must repeat it to the byte."""

    topic_partition: TopicPartition
    data: bytes | bytearray | memoryview
    base_sequence: int
    count: int
    digest: int = 0
    """CRC of the uncompressed records: brokers may change everything else in a batch."""


@dataclass(slots=True)
class _OpenBatch:
    limit_bytes: int
    out: bytearray
    at: int = HEADER_BYTES
    count: int = 0
    base_timestamp: int = 0
    max_timestamp: int = 0


@dataclass(slots=True)
class RecordAccumulator:
    """Takes rows of any partition and returns the batches that became full."""

    identity: ProducerIdentity
    codec: Codec
    level: int | None
    limit_bytes: Callable[[], int]
    """The size limit of the next batch; called for each, since attempts must cut differently."""
    total_bytes: int
    """When all open batches together reach this size, all are sealed."""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    """The next sequence number of each partition."""
    _open: dict[TopicPartition, _OpenBatch] = field(default_factory=dict)
    _open_bytes: int = 0
    _filled: set[TopicPartition] = field(default_factory=set)
    """Partitions that have filled a batch, and will probably fill another."""

    def add(
        self,
        topic_partition: TopicPartition,
        rows: RecordColumns,
        order: npt.NDArray[np.int32],
        timestamps: npt.NDArray[np.int64],
    ) -> Iterator[SealedBatch]:
        """Add the rows with these numbers; yields the batches that this filled."""
        start, end = 0, len(order)
        while start < end:
            batch = self._open_batch(topic_partition)
            if batch.count == 0:
                batch.base_timestamp = batch.max_timestamp = int(timestamps[order[start]])
            before = batch.at
            reached, batch.at, newest, needed = append(
                batch.out,
                batch.at,
                min(len(batch.out), batch.limit_bytes),
                order.data,
                start,
                end,
                timestamps.data,
                batch.base_timestamp,
                batch.count,
                rows,
            )
            if reached > start:
                batch.count += reached - start
                batch.max_timestamp = max(batch.max_timestamp, newest)
                self._open_bytes += batch.at - before
                start = reached
            if needed and not self._made_room(batch, needed):
                self._filled.add(topic_partition)
                yield self._sealed(topic_partition)
        if self._open_bytes >= self.total_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[SealedBatch]:
        """Seal every open batch."""
        for tp in list(self._open):
            yield self._sealed(tp)

    def _open_batch(self, topic_partition: TopicPartition) -> _OpenBatch:
        batch = self._open.get(topic_partition)
        if batch is None:
            limit = max(self.limit_bytes(), HEADER_BYTES)
            room = limit if topic_partition in self._filled else min(FIRST_BYTES, limit)
            batch = self._open[topic_partition] = _OpenBatch(limit, bytearray(room))
        return batch

    @staticmethod
    def _made_room(batch: _OpenBatch, needed: int) -> bool:
        """Grow the buffer for the record that did not fit; False if the batch is full.

        The first record of a batch always fits, whatever the limit.
        """
        wanted = batch.at + needed
        if batch.count == 0:
            batch.limit_bytes = max(batch.limit_bytes, wanted)
        if wanted > batch.limit_bytes:
            return False
        grown = min(max(8 * len(batch.out), wanted), batch.limit_bytes)
        batch.out.extend(bytes(grown - len(batch.out)))
        return True

    def _sealed(self, topic_partition: TopicPartition) -> SealedBatch:
        batch = self._open.pop(topic_partition)
        self._open_bytes -= batch.at - HEADER_BYTES
        out = batch.out
        digest = crc32c(memoryview(out)[HEADER_BYTES : batch.at])
        if self.codec is not Codec.NONE:
            packed = compress(self.codec, memoryview(out)[HEADER_BYTES : batch.at], self.level)
            out = out[:HEADER_BYTES] + packed
            batch.at = len(out)
        base_sequence = -1
        if self.identity.is_idempotent:
            base_sequence = self.sequences.get(topic_partition, 0)
            self.sequences[topic_partition] = (base_sequence + batch.count) % SEQUENCES
        HEADER.pack_into(
            out,
            0,
            0,
            batch.at - LENGTH_END,
            -1,
            MAGIC,
            0,
            self.codec | self.identity.transactional * TRANSACTIONAL,
            batch.count - 1,
            batch.base_timestamp,
            batch.max_timestamp,
            self.identity.producer_id,
            self.identity.producer_epoch,
            base_sequence,
            batch.count,
        )
        data = memoryview(out)[: batch.at]
        seal(data)
        return SealedBatch(topic_partition, data, base_sequence, batch.count, digest)
