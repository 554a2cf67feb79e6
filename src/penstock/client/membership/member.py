"""What a membership tells its caller to do: requests to send, and changes that a poll carries out.

    action = membership.next(now_ms)      # Send, LookUp, Wait or Left
    change = membership.change            # Revoke, Lose or Assign: done by the next poll

One request is in flight at a time. Its result goes back by `received` or `failed`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition, Uuid
from penstock.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request to the group's coordinator, and wait `timeout_ms` for the response."""

    request: Message
    response_type: type[Message]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find the partition counts of these topics; pass them to `topics_found`."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this time; None: not until something else happens."""

    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Left:
    """The member has left the group, or never joined it."""


Action: TypeAlias = Send | LookUp | Wait | Left


@dataclass(frozen=True, slots=True)
class Revoke:
    """Finish with these partitions: commit, call back, stop fetching."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lose:
    """Another member may already own these partitions: no commit is possible."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assign:
    """Start to fetch these partitions."""

    partitions: frozenset[TopicPartition]


Change: TypeAlias = Revoke | Lose | Assign


def owned_after(owned: frozenset[TopicPartition], change: Change) -> frozenset[TopicPartition]:
    match change:
        case Revoke(partitions) | Lose(partitions):
            return owned - partitions
        case Assign(partitions):
            return owned | partitions


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A member as its coordinator knows it; commits and transactions carry it.

    `generation` is the member epoch in the consumer protocol; -1 outside of the group.
    """

    group: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


class MembershipFailed(KafkaError):
    """The coordinator refuses this member for good; a retry would not help."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code  # type: ignore[misc]  # see KafkaError


class Membership(Protocol):
    """Either protocol's state machine. Times are monotonic milliseconds."""

    @property
    def change(self) -> Change | None:
        """What the next poll must do before it fetches."""
        ...

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the member may fetch and commit."""
        ...

    @property
    def metadata(self) -> GroupMetadata: ...

    def next(self, now_ms: int) -> Action: ...

    def received(self, response: Message, now_ms: int) -> None:
        """The response to the request in flight; raises `MembershipFailed`."""
        ...

    def failed(self, now_ms: int) -> None:
        """The request in flight got no response."""
        ...

    def changed(self, change: Change, now_ms: int) -> None:
        """The change was carried out; no effect if it is not the current one any more."""
        ...

    def topics_found(self, counts: Mapping[str, int], ids: Mapping[Uuid, str]) -> None:
        """Partition counts by name and names by id, of the topics that exist now."""
        ...

    def subscribe(self, topics: Iterable[str], pattern: str | None = None) -> None: ...

    def polled(self, now_ms: int) -> None:
        """The application polls: it is alive."""
        ...

    def fenced(self, code: ErrorCode) -> None:
        """A commit was refused with an error about the member."""
        ...

    def leave(self) -> None:
        """Leave as soon as no request is in flight."""
        ...
