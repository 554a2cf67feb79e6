"""The result of an operation on a shard, as a value: records to append and replies to send."""

from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import KafkaError

T = TypeVar("T")
Rec = TypeVar("Rec")
Soft = TypeVar("Soft")

Refused: TypeAlias = KafkaError | None
"""The result for one item of a request: the error, or None if the item was accepted."""


class Now(NamedTuple):
    """One moment on two clocks: wall time for records, steady time for deadlines."""

    wall_ms: int
    steady_ms: int


class PendingReply(Generic[T]):
    """The reply to one request, which may come later.

    An operation answers it by an `Answer`, at once or in a later operation; the runtime fills it.
    """

    __slots__ = ("__weakref__", "offset", "partition", "reply")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.reply: T | KafkaError | None = None
        self.offset = 0
        """The reply may be sent once the log is committed up to here."""


class EmptyReply(msgspec.Struct, frozen=True):
    """Success, with nothing more to say."""


class Answer(NamedTuple):
    """A pending reply and its value."""

    pending: PendingReply[Any]
    reply: object


def answer(pending: PendingReply[T], reply: T | KafkaError) -> Answer:
    return Answer(pending, reply)


class CoordinatorResult(msgspec.Struct, Generic[Rec, Soft], frozen=True):
    """Records to append as one batch, and the answers to send once the batch is committed.

    If the append fails, nothing has changed, and the requester gets the error: state is a value,
    and the shard takes the new one only after the append. So there is nothing to undo.
    """

    records: tuple[Rec, ...] = ()
    answers: tuple[Answer, ...] = ()
    soft_state: Soft | None = None
    """State that no record holds, such as pending replies; the shard takes it after the append."""
    reads_state: bool = False
    """The answers reveal state: everything appended so far must be committed before they are sent.
    Otherwise a fail-over could take back what a client has already read."""
    may_split: bool = False
    """Each record makes sense with only those before it. If they are too large for one batch, they
    may become several, and a failure may leave some of them written."""
    producer: ProducerIdAndEpoch | None = None
    """The records belong to this producer's transaction and take effect when it commits."""


class CoordinatorShard(Protocol[Rec, Soft]):
    """The state of one partition of an internal topic."""

    def replay(self, record: Rec) -> None: ...

    def replay_pending(self, record: Rec) -> None:
        """The record belongs to an open transaction: it may be replayed later, or never."""

    def apply_soft_state(self, soft_state: Soft) -> None: ...

    def on_loaded(self, now: Now) -> None:
        """The whole log has been replayed; deadlines start now."""

    def next_deadline_ms(self) -> int | None:
        """When `expire` may have something to decide, in steady time."""

    def expire(self, now: Now) -> CoordinatorResult[Rec, Soft]:
        """Decide one thing that is due; called again while the next deadline has passed."""
