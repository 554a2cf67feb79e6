"""Rows become record batches: one draft for each partition, sealed when it is full."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from penstock.record.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    SEQUENCES,
    TRANSACTIONAL,
    seal,
)
from penstock.record.compression import Codec, compress
from penstock.spark.sink.encode import Rows, append
from penstock.types import TopicPartition

FIRST_BYTES: Final = 16 * 1024
"""Room of a partition's first draft, so that many small partitions cost little."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose batches these are; -1 where nobody asked for idempotence."""

    producer_id: int = -1
    producer_epoch: int = -1
    transactional: bool = False

    @property
    def numbered(self) -> bool:
        return self.producer_id >= 0


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch that is never changed again: what is repeated must be the same to the byte."""

    place: TopicPartition
    data: bytes | bytearray | memoryview
    base_sequence: int
    count: int
    digest: int = 0
    """The CRC of its records before compression: brokers may change all else of a batch."""


@dataclass(slots=True)
class _Draft:
    limit_bytes: int
    out: bytearray
    at: int = HEADER_BYTES
    count: int = 0
    base_timestamp: int = 0
    max_timestamp: int = 0


@dataclass(slots=True)
class Batching:
    """Takes rows of any partition and gives back the batches that became full."""

    identity: Identity
    codec: Codec
    level: int | None
    limit_bytes: Callable[[], int]
    """How large the next batch may be; asked for each, since retries must not cut alike."""
    total_bytes: int
    """Of all drafts together; from here on all are sealed."""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    """The next one of each partition."""
    _drafts: dict[TopicPartition, _Draft] = field(default_factory=dict)
    _drafted_bytes: int = 0
    _filled: set[TopicPartition] = field(default_factory=set)
    """Partitions that have filled a batch, and will fill another."""

    def add(
        self,
        place: TopicPartition,
        rows: Rows,
        order: npt.NDArray[np.int32],
        timestamps: npt.NDArray[np.int64],
    ) -> Iterator[Sealed]:
        """Write the rows of these numbers; the batches that this filled."""
        start, end = 0, len(order)
        while start < end:
            draft = self._draft(place)
            if draft.count == 0:
                draft.base_timestamp = draft.max_timestamp = int(timestamps[order[start]])
            before = draft.at
            reached, draft.at, newest, needed = append(
                draft.out,
                draft.at,
                min(len(draft.out), draft.limit_bytes),
                order.data,
                start,
                end,
                timestamps.data,
                draft.base_timestamp,
                draft.count,
                rows,
            )
            if reached > start:
                draft.count += reached - start
                draft.max_timestamp = max(draft.max_timestamp, newest)
                self._drafted_bytes += draft.at - before
                start = reached
            if needed and not self._made_room(draft, needed):
                self._filled.add(place)
                yield self._sealed(place)
        if self._drafted_bytes >= self.total_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[Sealed]:
        """What is drafted, as batches."""
        for place in list(self._drafts):
            yield self._sealed(place)

    def _draft(self, place: TopicPartition) -> _Draft:
        draft = self._drafts.get(place)
        if draft is None:
            limit = self.limit_bytes()
            room = limit if place in self._filled else min(FIRST_BYTES, limit)
            draft = self._drafts[place] = _Draft(limit, bytearray(room))
        return draft

    @staticmethod
    def _made_room(draft: _Draft, needed: int) -> bool:
        """Whether the record that found no room has it now; a lone one gets what it takes."""
        wanted = draft.at + needed
        if draft.count == 0:
            draft.limit_bytes = max(draft.limit_bytes, wanted)
        if wanted > draft.limit_bytes:
            return False
        grown = min(max(8 * len(draft.out), wanted), draft.limit_bytes)
        draft.out.extend(bytes(grown - len(draft.out)))
        return True

    def _sealed(self, place: TopicPartition) -> Sealed:
        draft = self._drafts.pop(place)
        self._drafted_bytes -= draft.at - HEADER_BYTES
        out = draft.out
        digest = crc32c(memoryview(out)[HEADER_BYTES : draft.at])
        if self.codec is not Codec.NONE:
            packed = compress(self.codec, memoryview(out)[HEADER_BYTES : draft.at], self.level)
            out = out[:HEADER_BYTES] + packed
            draft.at = len(out)
        base_sequence = -1
        if self.identity.numbered:
            base_sequence = self.sequences.get(place, 0)
            self.sequences[place] = (base_sequence + draft.count) % SEQUENCES
        HEADER.pack_into(
            out,
            0,
            0,
            draft.at - LENGTH_END,
            -1,
            MAGIC,
            0,
            self.codec | self.identity.transactional * TRANSACTIONAL,
            draft.count - 1,
            draft.base_timestamp,
            draft.max_timestamp,
            self.identity.producer_id,
            self.identity.producer_epoch,
            base_sequence,
            draft.count,
        )
        data = memoryview(out)[: draft.at]
        seal(data)
        return Sealed(place, data, base_sequence, draft.count, digest)
