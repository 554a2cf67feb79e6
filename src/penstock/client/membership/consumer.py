"""Membership by the consumer protocol (KIP-848): only heartbeats; the coordinator assigns.

A heartbeat repeats subscription and owned partitions only if they changed, or if it is unknown
whether the coordinator has them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.client.membership.member import (
    Action,
    Assign,
    Change,
    GroupMetadata,
    Left,
    LookUp,
    Lose,
    MembershipFailed,
    Revoke,
    Send,
    Wait,
    owned_after,
)
from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.wire.schema import Message

NO_EPOCH: Final = -1
JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_RESTART: Final = -2
"""For a static member that will come back: its partitions wait for it."""
RETRY_MS: Final = 100
NOT_A_MEMBER: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH}
)
AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNRELEASED_INSTANCE_ID,  # until the former process's session ends
    }
)


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Settings of the consumer protocol; the heartbeat interval comes from the coordinator."""

    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    instance_id: str | None = None
    assignor: str | None = None
    """The server-side assignor, `uniform` or `range`; None leaves it to the coordinator."""


class _Sent(NamedTuple):
    """The state last sent to the coordinator."""

    topics: frozenset[str]
    pattern: str | None
    owned: frozenset[TopicPartition]


class ConsumerMembership:
    """A `Membership`; the caller makes `member_id`, which must be unique."""

    def __init__(self, group: str, member_id: str, settings: ConsumerSettings) -> None:
        self._group, self._member_id, self._settings = group, member_id, settings
        self._epoch = JOINING
        self._latest_epoch = NO_EPOCH
        """The latest member epoch, kept even after the member was removed: without an epoch its
        commits would be accepted as an administrator's once the group is empty.
        """
        self._is_out = True
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        self._had_pattern = False
        """The coordinator keeps a pattern until it gets another one, or an empty one."""
        self._owned: frozenset[TopicPartition] = frozenset()
        self._target: frozenset[tuple[Uuid, int]] | None = None
        """The coordinator's assignment; None before the first one."""
        self._changes: list[Change] = []
        self._ids: Mapping[Uuid, str] = {}
        self._sent: _Sent | None = None
        self._sending: _Sent | None = None
        self._in_flight = False
        self._leaving = False
        self._interval_ms = 5_000
        self._due_ms = 0
        self._polled_ms = 0
        self._looked_up = False

    @property
    def change(self) -> Change | None:
        return self._changes[0] if self._changes else None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self._owned

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(
            self._group, self._member_id, self._latest_epoch, self._settings.instance_id
        )

    def subscribe(self, topics: Iterable[str], pattern: str | None = None) -> None:
        self._topics, self._pattern = frozenset(topics), pattern
        self._had_pattern = self._had_pattern or pattern is not None

    def topics_found(self, counts: Mapping[str, int], ids: Mapping[Uuid, str]) -> None:  # noqa: ARG002  for the other protocol
        self._ids, self._looked_up = dict(ids), True
        self._reconcile()

    def polled(self, now_ms: int) -> None:
        self._polled_ms = now_ms
        if self._is_out and not self._leaving:
            self._is_out, self._due_ms = False, now_ms

    def leave(self) -> None:
        self._leaving = True

    def fenced(self, code: ErrorCode) -> None:
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            self._due_ms = 0  # the response to the next heartbeat has the newer epoch
        elif code in NOT_A_MEMBER:
            self._forgotten()

    def next(self, now_ms: int) -> Action:
        if self._in_flight:
            return Wait(None)
        if self._leaving or self._is_overdue(now_ms):
            return self._left()
        if self._is_out:
            return Wait(None)
        if self._unresolved() and not self._looked_up:
            return LookUp(self._topics)
        if self._epoch == JOINING and self._changes:
            return Wait(None)  # give up the former partitions before joining again
        state = _Sent(self._topics, self._pattern, self._owned)
        has_news = self._sent is not None and self._sent != state and not self._changes
        if now_ms < self._due_ms and not has_news:
            return Wait(self._due_ms)
        return self._heartbeat(state)

    def received(self, response: Message, now_ms: int) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        self._in_flight = False
        self._due_ms = now_ms + self._interval_ms
        code = response.error_code
        if self._sending is None:  # the response to a leave
            return
        if code in NOT_A_MEMBER:
            self._forgotten()
        elif code in AGAIN:
            self.failed(now_ms)
        elif code != ErrorCode.NONE:
            self._forgotten()
            error = ErrorCode(code)
            reason = f": {response.error_message}" if response.error_message else ""
            raise MembershipFailed(error, f"group {self._group}: {error.name}{reason}")
        else:
            self._sent = self._sending
            self._epoch = self._latest_epoch = response.member_epoch
            self._interval_ms = max(1, response.heartbeat_interval_ms)
            self._due_ms = now_ms + self._interval_ms
            if response.assignment is not None:
                self._target = frozenset(
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                )
                self._looked_up = False
                self._reconcile()

    def failed(self, now_ms: int) -> None:
        self._in_flight, self._sent = False, None
        self._due_ms = now_ms + RETRY_MS

    def changed(self, change: Change, now_ms: int) -> None:
        if self.change is not change:
            return  # overtaken: the member was fenced meanwhile
        self._changes.pop(0)
        self._owned = owned_after(self._owned, change)
        if not self._changes:
            self._due_ms = min(self._due_ms, now_ms)  # report to the coordinator at once
            self._reconcile()

    def _reconcile(self) -> None:
        """Move from the owned partitions to the target; one reconciliation at a time."""
        if self._target is None or self._changes:
            return
        wanted = frozenset(
            TopicPartition(self._ids[topic], index)
            for topic, index in self._target
            if topic in self._ids
        )
        if self._owned - wanted:
            self._changes.append(Revoke(self._owned - wanted))
        if wanted - self._owned:
            self._changes.append(Assign(wanted - self._owned))

    def _unresolved(self) -> bool:
        return any(topic not in self._ids for topic, _ in self._target or ())

    def _is_overdue(self, now_ms: int) -> bool:
        limit_ms = self._settings.max_poll_interval_ms
        return not self._is_out and now_ms - self._polled_ms > limit_ms

    def _left(self) -> Action:
        known, leaving = self._epoch > JOINING, self._leaving
        epoch = LEAVING if self._settings.instance_id is None else LEAVING_FOR_RESTART
        self._forgotten()
        self._is_out = True
        if not known:
            return Left() if leaving else Wait(None)
        self._in_flight, self._sending = True, None
        return self._request(
            ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=epoch,
                instance_id=self._settings.instance_id,
            )
        )

    def _heartbeat(self, state: _Sent) -> Action:
        before = self._sent if self._epoch > JOINING else None
        is_first, settings = before is None, self._settings
        topics = None if before and before.topics == state.topics else sorted(state.topics)
        pattern = "" if state.pattern is None and self._had_pattern else state.pattern
        if before and before.pattern == state.pattern:
            pattern = None
        owned = None if before and before.owned == state.owned else self._by_id(state.owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=settings.instance_id,
            rebalance_timeout_ms=settings.max_poll_interval_ms if is_first else -1,
            subscribed_topic_names=topics,
            subscribed_topic_regex=pattern,
            server_assignor=settings.assignor if is_first else None,
            topic_partitions=owned,
        )
        self._sending, self._in_flight, self._looked_up = state, True, False
        return self._request(request)

    def _request(self, request: ConsumerGroupHeartbeatRequest) -> Send:
        timeout_ms = self._settings.request_timeout_ms
        return Send(request, ConsumerGroupHeartbeatResponse, timeout_ms)

    def _by_id(self, partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
        names = {name: topic for topic, name in self._ids.items()}
        found: dict[Uuid, list[int]] = {}
        for topic, index in sorted(partitions):
            if topic in names:
                found.setdefault(names[topic], []).append(index)
        return [TopicPartitions(topic_id=topic, partitions=each) for topic, each in found.items()]

    def _forgotten(self) -> None:
        """Join again with the same member id; nothing is owned until then."""
        self._epoch, self._sent, self._target, self._due_ms = JOINING, None, None, 0
        self._changes = [Lose(self._owned)] if self._owned else []
