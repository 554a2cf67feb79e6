"""A partition's state of one producer: its epoch, its last batches, its transaction."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from penstock.record.batch import BatchHeader

REMEMBERED_BATCHES: Final = 5
"""As many batches as a client may have in flight: each may be sent again after a lost response."""

SEQUENCE_MODULUS: Final = 1 << 31


class BatchMetadata(NamedTuple):
    """The offsets of a producer's batch, so that a retry is answered and not appended again."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % SEQUENCE_MODULUS

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass
class ProducerEntry:
    """One producer's state; `batches` has the newest last, and all of them are of its epoch."""

    producer_id: int
    producer_epoch: int
    batches: list[BatchMetadata] = field(default_factory=list)
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    current_txn_first_offset: int | None = None
    appended_ms: int | None = None
    """When its newest batch or marker was appended; None if it was read from the disk since."""

    @property
    def idle_since_ms(self) -> int:
        """The time of the last append, or the last timestamp if that is unknown.

        Batches may carry timestamps of years ago, and their retries must be recognized for as long
        as any others. (Kafka goes by the timestamp alone.)
        """
        return self.last_timestamp if self.appended_ms is None else self.appended_ms

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch with the same sequences; the caller has compared the epochs."""
        last_sequence = header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.base_sequence == header.base_sequence:
                return batch
        return None

    def begin_epoch(self, producer_epoch: int) -> None:
        """Move to another epoch, in which sequences start again."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()

    def remember(self, header: BatchHeader, appended_ms: int | None) -> None:
        if header.producer_epoch != self.producer_epoch:
            self.begin_epoch(header.producer_epoch)
        batches = self.batches
        batches.append(
            BatchMetadata(
                header.last_sequence,
                header.base_offset + header.last_offset_delta,
                header.last_offset_delta,
                header.max_timestamp,
            )
        )
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        self.last_timestamp = header.max_timestamp
        self.appended_ms = appended_ms
