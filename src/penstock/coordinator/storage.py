"""What a coordinator asks of the log of its partition, and how records lie in it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from penstock.types import Buffer

Rec = TypeVar("Rec")


class RawRecord(NamedTuple):
    """Key and value as they are written; without a value it is a tombstone."""

    key: bytes
    value: bytes | None


class Producer(msgspec.Struct, frozen=True):
    """A producer with a transactional id, as it names itself."""

    id: int
    epoch: int


class CoordinatorLog(Protocol):
    """One partition of the internal topic, led by this broker."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def append(
        self, records: list[RawRecord], now_ms: int, producer: Producer | None = None
    ) -> int:
        """Write them as one batch; the offset behind it. Refused as the client is to hear it.

        With a producer, they are part of its transaction.
        """

    def is_committed(self, offset: int) -> bool:
        """Nobody can lose what lies before `offset` any more."""

    def when_committed(self, offset: int, then: Callable[[], object]) -> None:
        """Call once that is so, unless another broker leads by then."""

    def read(self, offset: int) -> Buffer:
        """Some batches from there on; nothing at the end."""


class RecordFormat(Protocol[Rec]):
    """How a coordinator's records are spelled."""

    def encode(self, record: Rec) -> RawRecord: ...

    def decode(self, raw: RawRecord) -> Rec | None:
        """None for a kind of record that is not known here."""
