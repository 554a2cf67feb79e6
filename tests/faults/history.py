"""What clients did and were told while faults happened: the checker's only input."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """A record that a producer sent, in the order of sending."""

    value: str
    partition: int
    offset: int | None
    """Where it was acknowledged to be; None: the producer does not know what became of it."""


class Polled(NamedTuple):
    """A record that a consumer got, in the order of getting."""

    partition: int
    offset: int
    value: str
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Transaction:
    """What its producer was told of it."""

    values: tuple[str, ...]
    outcome: str
    """`committed`, `aborted`, or `unknown`."""


@dataclass(slots=True)
class History:
    """Of one topic. `final` is what a new consumer reads when everything has healed."""

    sent: dict[str, list[Sent]] = field(default_factory=dict)
    """By producer; each is idempotent."""
    transactions: list[Transaction] = field(default_factory=list)
    polled: dict[str, list[Polled]] = field(default_factory=dict)
    """By consumer; each reads read_committed, every partition from its start, without a group."""
    final: list[Polled] = field(default_factory=list)
