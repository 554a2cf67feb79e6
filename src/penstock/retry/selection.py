"""Selects the records of a command: by position, key, error, origin, time or filter. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.record.dead_letter import DeadLetter
from penstock.record.record import Record
from penstock.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """All conditions must hold; None or an empty value does not restrict."""

    positions: frozenset[tuple[int, int]] = field(default=frozenset())
    """Pairs of partition and offset."""
    key: bytes | None = None
    error: str | None = None
    """A part of the error's text; case does not matter."""
    origin: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    """Exclusive."""
    matches: Callable[[TopicPartition, Record], bool] | None = None

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def has(
        self, partition: TopicPartition, record: Record, letter: DeadLetter | None, at_ms: int
    ) -> bool:
        """`at_ms` is the time to compare: when a record is due, or its timestamp."""
        error = letter.error if letter is not None else ""
        origin = letter.topic if letter is not None else None
        return (
            (not self.positions or (partition.partition, record.offset) in self.positions)
            and (self.key is None or record.key == self.key)
            and (self.error is None or self.error.casefold() in error.casefold())
            and (self.origin is None or self.origin == origin)
            and (self.since_ms is None or at_ms >= self.since_ms)
            and (self.until_ms is None or at_ms < self.until_ms)
            and (self.matches is None or self.matches(partition, record))
        )


EVERYTHING = Selection()
