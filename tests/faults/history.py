"""What clients did, and the responses they got, while faults happened: the checker's only input."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """A record that a producer sent; kept in the order of sending."""

    value: str
    partition: int
    offset: int | None
    """The acknowledged offset; None if the producer does not know the outcome."""


class Polled(NamedTuple):
    """A record that a consumer got; kept in the order of arrival."""

    partition: int
    offset: int
    value: str
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction with the outcome that its producer was told."""

    values: tuple[str, ...]
    outcome: str
    """`committed`, `aborted`, or `unknown`."""


class Assigned(NamedTuple):
    """A member of a group got an assignment: these are all partitions that it owns now."""

    partitions: frozenset[int]
    at_ms: int
    generation: int | None = None
    """None if its client does not report it."""


class Committed(NamedTuple):
    """An offset that a member committed successfully."""

    partition: int
    offset: int
    asked_ms: int
    told_ms: int
    generation: int | None = None


MemberEvent = Assigned | Polled | Committed


class Looked(NamedTuple):
    """The committed offsets of a group by partition, as the coordinator returned them."""

    asked_ms: int
    offsets: dict[int, int]


@dataclass(slots=True)
class Group:
    """Members that read a topic from its start and commit what they have read."""

    members: dict[str, list[MemberEvent]] = field(default_factory=dict)
    """The events of each member, in order. A member that restarts counts as another one."""
    looked: list[Looked] = field(default_factory=list)
    """The results of successive offset fetches."""


class Given(NamedTuple):
    """A record that a member of a share group got."""

    member: str
    partition: int
    offset: int
    value: str
    at_ms: int


class Accepted(NamedTuple):
    """An offset whose acknowledgement by a member of a share group succeeded."""

    member: str
    partition: int
    offset: int
    at_ms: int


@dataclass(slots=True)
class Queue:
    """A share group that reads committed records of a topic from its start, and accepts each."""

    given: list[Given] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    refused: list[Accepted] = field(default_factory=list)
    """Failed acknowledgements: the group may have stored them although the answer was lost."""


class Arrived(NamedTuple):
    """A delayed record in the topic where it is due."""

    value: str
    at_ms: float


@dataclass(slots=True)
class Delayed:
    """Records that were acknowledged by a delay topic, and those that arrived."""

    due_ms: dict[str, float] = field(default_factory=dict)
    """By value."""
    unknown: set[str] = field(default_factory=set)
    """Values whose producer does not know whether the topic has them."""
    arrived: list[Arrived] = field(default_factory=list)


@dataclass(slots=True)
class History:
    """The history of one topic. `final` is what a new consumer reads when everything has healed."""

    sent: dict[str, list[Sent]] = field(default_factory=dict)
    """By producer; each is idempotent."""
    transactions: list[Transaction] = field(default_factory=list)
    polled: dict[str, list[Polled]] = field(default_factory=dict)
    """By consumer; each reads every partition from its start with read_committed, without a
    group.
    """
    groups: dict[str, Group] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    """Share groups by name."""
    delayed: list[Delayed] = field(default_factory=list)
    final: list[Polled] = field(default_factory=list)


def by_partition(polled: Iterable[Polled]) -> dict[int, list[Polled]]:
    found: dict[int, list[Polled]] = defaultdict(list)
    for each in polled:
        found[each.partition].append(each)
    return found
