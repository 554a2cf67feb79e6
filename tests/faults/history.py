"""What clients did and were told while faults happened: the checker's only input."""

from collections import defaultdict
from collections.abc import Iterable
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


class Assigned(NamedTuple):
    """A member of a group got partitions: these are all that it holds now."""

    partitions: frozenset[int]
    at_ms: int
    generation: int | None = None
    """None: its client does not tell."""


class Committed(NamedTuple):
    """An offset that a member committed, and was told so."""

    partition: int
    offset: int
    asked_ms: int
    told_ms: int
    generation: int | None = None


MemberEvent = Assigned | Polled | Committed


class Looked(NamedTuple):
    """The committed offsets of a group by partition, as whoever asked for them was told."""

    asked_ms: int
    offsets: dict[int, int]


@dataclass(slots=True)
class Group:
    """Members that read a topic from its start and commit what they have read."""

    members: dict[str, list[MemberEvent]] = field(default_factory=dict)
    """What each heard, in order. A member that restarts is another one."""
    looked: list[Looked] = field(default_factory=list)
    """One question after the other."""


@dataclass(slots=True)
class History:
    """Of one topic. `final` is what a new consumer reads when everything has healed."""

    sent: dict[str, list[Sent]] = field(default_factory=dict)
    """By producer; each is idempotent."""
    transactions: list[Transaction] = field(default_factory=list)
    polled: dict[str, list[Polled]] = field(default_factory=dict)
    """By consumer; each reads read_committed, every partition from its start, without a group."""
    groups: dict[str, Group] = field(default_factory=dict)
    final: list[Polled] = field(default_factory=list)


def by_partition(polled: Iterable[Polled]) -> dict[int, list[Polled]]:
    found: dict[int, list[Polled]] = defaultdict(list)
    for each in polled:
        found[each.partition].append(each)
    return found
