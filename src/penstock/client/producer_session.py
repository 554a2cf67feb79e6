"""A producer's identity, as its batches carry it."""

from dataclasses import dataclass, field

from penstock.types import TopicPartition


@dataclass(slots=True)
class ProducerSession:
    """A producer's identity and its sequence numbers; without an id nothing detects duplicates."""

    producer_id: int = -1
    producer_epoch: int = -1
    transactional_id: str | None = None
    adds_implicitly: bool = True
    """A write adds its partition to the transaction, as of `transaction.version` 2."""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0
