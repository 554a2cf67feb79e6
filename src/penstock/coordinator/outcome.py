"""What an operation on a shard decides, as a value, and how whoever asked hears of it."""

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from penstock.coordinator.storage import Producer
from penstock.errors import KafkaError

T = TypeVar("T")
Rec = TypeVar("Rec")
Soft = TypeVar("Soft")


class Now(NamedTuple):
    """When something happens: the time of day for records, steady time for deadlines."""

    wall_ms: int
    steady_ms: int


class Ticket(Generic[T]):
    """A reply to come. Shards keep tickets and name them in answers; the runtime fills them in."""

    __slots__ = ("__weakref__", "offset", "partition", "reply")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.reply: T | KafkaError | None = None
        self.offset = 0
        """The reply may leave once the log is committed up to here."""


class Done(msgspec.Struct, frozen=True):
    """The reply that has nothing more to tell."""


class Answer(NamedTuple):
    """A ticket, and what it was waiting for."""

    ticket: Ticket[Any]
    reply: object


def answer(ticket: Ticket[T], reply: T | KafkaError) -> Answer:
    return Answer(ticket, reply)


class Outcome(msgspec.Struct, Generic[Rec, Soft], frozen=True):
    """Records to append as one batch, and the answers that leave once they are committed.

    If the records cannot be written, nothing has happened and whoever asked hears why. Where that
    need not hold (`may_split`), they become several batches if one would be too large.
    """

    records: tuple[Rec, ...] = ()
    answers: tuple[Answer, ...] = ()
    soft: Soft | None = None
    """State that no record holds, such as who waits: the shard keeps it after the append."""
    reads: bool = False
    """The answers tell what records said: all that is appended by now must be committed first."""
    may_split: bool = False
    """Each record makes sense with only those before it: they need not be written together."""
    producer: Producer | None = None
    """Whose transaction the records belong to: they count once it is committed, if it is."""


class Shard(Protocol[Rec, Soft]):
    """The state of one partition of an internal topic."""

    def replay(self, record: Rec) -> None: ...

    def pended(self, record: Rec) -> None:
        """A transaction that is open holds this record: it may be replayed later, or never."""

    def keep(self, soft: Soft) -> None: ...

    def loaded(self, now: Now) -> None:
        """All that the log held has been replayed; deadlines begin now."""

    def next_deadline_ms(self) -> int | None:
        """When `expire` may have something to decide, in steady time."""

    def expire(self, now: Now) -> Outcome[Rec, Soft]:
        """Decide one thing that is due; called again while the next deadline has passed."""
