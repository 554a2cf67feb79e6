"""A producer's identity, as its batches carry it, and its settings."""

from dataclasses import dataclass, field
from enum import IntEnum

from penstock.record.compression import Codec
from penstock.types import TopicPartition


class Acks(IntEnum):
    """Kafka's `acks`: which replicas must have a record before the leader answers."""

    NONE = 0
    LEADER = 1
    ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """Kafka's producer settings of these names, with its defaults."""

    acks: Acks = Acks.ALL
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    codec: Codec = Codec.NONE


@dataclass(slots=True)
class ProducerSession:
    """A producer's identity and sequence numbers; without an id, duplicates are not detected."""

    producer_id: int = -1
    producer_epoch: int = -1
    transactional_id: str | None = None
    adds_implicitly: bool = True
    """Whether a write adds its partition to the transaction, as with `transaction.version` 2."""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0
