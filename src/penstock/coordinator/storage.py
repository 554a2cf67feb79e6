"""Protocols for the log of a coordinator's partition and for the encoding of records in it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from penstock.types import Buffer

Rec = TypeVar("Rec")


class RawRecord(NamedTuple):
    """Encoded key and value; a record without a value is a tombstone."""

    key: bytes
    value: bytes | None


class ProducerIdAndEpoch(msgspec.Struct, frozen=True):
    """The identity of a producer, as its requests state it."""

    id: int
    epoch: int


class CoordinatorLog(Protocol):
    """One partition of the internal topic, led by this broker."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def append(
        self, records: list[RawRecord], now_ms: int, producer: ProducerIdAndEpoch | None = None
    ) -> int:
        """Append the records as one batch and return the next offset.

        A `KafkaError` is the one that the client gets. With a producer, the records are part of
        its transaction.
        """

    def is_committed(self, offset: int) -> bool:
        """Whether everything before `offset` is replicated and cannot be lost."""

    def when_committed(self, offset: int, then: Callable[[], object]) -> None:
        """Call `then` once everything before `offset` is committed, if this broker still leads."""

    def delete_before(self, offset: int) -> None:
        """Forget committed records that are not needed any more."""

    def read(self, offset: int) -> Buffer:
        """Some batches from `offset` on; empty at the end of the log."""


class RecordFormat(Protocol[Rec]):
    """The encoding of a coordinator's records."""

    def encode(self, record: Rec) -> RawRecord: ...

    def decode(self, raw: RawRecord) -> Rec | None:
        """None for a record type that this broker does not know."""
