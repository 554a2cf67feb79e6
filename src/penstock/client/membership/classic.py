"""Membership by the classic protocol: join, sync, heartbeats. The group's leader assigns.

Eager members revoke everything before they join again; if all assignors are cooperative, a member
keeps its partitions and revokes what the new assignment takes away (KIP-429).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from penstock.client.membership.assignor import ASSIGNORS, Assignor, SubscribedMember
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
from penstock.client.membership.subscription import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from penstock.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from penstock.wire.schema import Message

NO_GENERATION: Final = -1
PROTOCOL_TYPE: Final = "consumer"
JOIN_MARGIN_MS: Final = 5_000
RETRY_MS: Final = 100
NOT_A_MEMBER: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)


class _State(Enum):
    OUT = auto()
    """Not in the group: before the first poll, after `leave`, or too long without a poll."""
    JOIN = auto()
    """A JoinGroup is due as soon as nothing is left to revoke."""
    SYNC = auto()
    STABLE = auto()


@dataclass(frozen=True, slots=True)
class ClassicSettings:
    """Kafka's consumer settings of the same names, with its defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    instance_id: str | None = None
    assignors: tuple[Assignor, ...] = (ASSIGNORS["range"], ASSIGNORS["cooperative-sticky"])


class ClassicMembership:
    """A `Membership`. The member counts as alive while `polled` is called often enough."""

    def __init__(self, group: str, settings: ClassicSettings) -> None:
        self._group, self._settings = group, settings
        self._cooperative = all(each.cooperative for each in settings.assignors)
        self._state = _State.OUT
        self._member_id = ""
        self._generation = NO_GENERATION
        self._metadata = GroupMetadata(group, "", NO_GENERATION, settings.instance_id)
        """The identity of the latest join. A removed member must not look like one without a group,
        whose transactions no coordinator fences.
        """
        self._owned: frozenset[TopicPartition] = frozenset()
        self._changes: list[Change] = []
        self._topics: frozenset[str] = frozenset()
        self._counts: Mapping[str, int] = {}
        self._assigned_by: Mapping[str, int] | None = None
        """The leader's partition counts when it assigned; None for followers."""
        self._joined: JoinGroupResponse | None = None
        """The response to join, until its sync."""
        self._subscribers: list[SubscribedMember] = []
        self._in_flight: type[Message] | None = None
        self._joined_as: frozenset[str] = frozenset()
        self._polled_ms = 0
        self._due_ms = 0
        """No join or sync is sent before this time."""
        self._beat_ms = 0
        """No heartbeat is sent before this time."""
        self._leaving = False
        self._looked_up = False

    @property
    def change(self) -> Change | None:
        return self._changes[0] if self._changes else None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self._owned

    @property
    def metadata(self) -> GroupMetadata:
        return self._metadata

    def subscribe(self, topics: Iterable[str], pattern: str | None = None) -> None:
        assert pattern is None, "the shell resolves patterns: the classic protocol knows names"
        self._topics = frozenset(topics)

    def topics_found(self, counts: Mapping[str, int], ids: Mapping[Uuid, str]) -> None:  # noqa: ARG002  for the other protocol
        self._counts, self._looked_up = dict(counts), True

    def polled(self, now_ms: int) -> None:
        self._polled_ms = now_ms
        if self._state is _State.OUT and not self._leaving:
            self._state = _State.JOIN
            self._due_ms = now_ms

    def leave(self) -> None:
        self._leaving = True

    def fenced(self, code: ErrorCode) -> None:
        if code in NOT_A_MEMBER:
            self._forgotten(code)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS and self._state is _State.STABLE:
            self._rejoin()

    def next(self, now_ms: int) -> Action:
        if self._in_flight is not None:
            return Wait(None)
        if self._leaving or self._is_overdue(now_ms):
            return self._left(now_ms)
        if self._state is _State.STABLE and self._is_outdated():
            self._rejoin()
        match self._state:
            case _State.OUT:
                return Wait(None)
            case _State.JOIN:
                if self._changes:
                    # The application has not given up its partitions yet: stay in the group.
                    return self._heartbeat(now_ms)
                return self._send(now_ms, self._join_request())
            case _State.SYNC:
                return self._sync(now_ms)
            case _State.STABLE:
                return self._heartbeat(now_ms)

    def received(self, response: Message, now_ms: int) -> None:
        self._in_flight = None
        match response:
            case JoinGroupResponse():
                self._on_join(response, now_ms)
            case SyncGroupResponse():
                self._on_sync(response, now_ms)
            case HeartbeatResponse():
                self._beat_ms = now_ms + self._settings.heartbeat_interval_ms
                self._on_error(response.error_code, now_ms)
            case LeaveGroupResponse():
                pass
            case _:
                raise AssertionError(f"{type(response).__name__} answers no request of a member")

    def failed(self, now_ms: int) -> None:
        sent, self._in_flight = self._in_flight, None
        if sent is SyncGroupRequest:
            self._rejoin()  # the generation may be over by now
        self._due_ms = self._beat_ms = now_ms + RETRY_MS

    def changed(self, change: Change, now_ms: int) -> None:
        if self.change is not change:
            return  # overtaken by another rebalance
        self._changes.pop(0)
        self._owned = owned_after(self._owned, change)
        if not self._changes and self._state is _State.JOIN:
            self._due_ms = now_ms

    def _is_overdue(self, now_ms: int) -> bool:
        in_group = self._state in {_State.STABLE, _State.JOIN} and self._member_id
        limit_ms = self._settings.max_poll_interval_ms
        return bool(in_group) and now_ms - self._polled_ms > limit_ms

    def _is_outdated(self) -> bool:
        """Whether the subscription changed, or the partition counts since the leader assigned."""
        if self._topics != self._joined_as:
            return True
        return self._assigned_by is not None and self._assigned_by != self._relevant()

    def _relevant(self) -> dict[str, int]:
        topics = {topic for member in self._subscribers for topic in member.topics}
        return {topic: count for topic, count in self._counts.items() if topic in topics}

    def _left(self, now_ms: int) -> Action:
        member_id, leaving = self._member_id, self._leaving
        self._forgotten(None)
        self._state = _State.OUT
        # A static member keeps its place until its session times out, so that it may restart.
        if not member_id or self._settings.instance_id is not None:
            return Left() if leaving else Wait(None)
        reason = "the consumer is being closed"
        if not leaving:
            reason = "the application has not polled within max.poll.interval.ms"
        identity = MemberIdentity(member_id=member_id, reason=reason)
        return self._send(
            now_ms,
            LeaveGroupRequest(group_id=self._group, member_id=member_id, members=[identity]),
        )

    def _send(self, now_ms: int, request: Message) -> Action:
        due_ms = self._beat_ms if isinstance(request, HeartbeatRequest) else self._due_ms
        if now_ms < due_ms and not self._leaving:
            return Wait(due_ms)
        settings = self._settings
        timeout_ms = settings.request_timeout_ms
        if isinstance(request, JoinGroupRequest | SyncGroupRequest):
            timeout_ms = max(timeout_ms, settings.max_poll_interval_ms + JOIN_MARGIN_MS)
        self._in_flight = type(request)
        return Send(request, RESPONSES[type(request)], timeout_ms)

    def _heartbeat(self, now_ms: int) -> Action:
        if not self._member_id or self._generation == NO_GENERATION:
            return Wait(None)
        return self._send(
            now_ms,
            HeartbeatRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._settings.instance_id,
            ),
        )

    def _join_request(self) -> JoinGroupRequest:
        settings = self._settings
        owned = self._owned if self._cooperative else frozenset[TopicPartition]()
        metadata = encode_subscription(self._topics, owned, self._generation)
        self._joined_as = self._topics
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=each.name, metadata=metadata)
                for each in settings.assignors
            ],
        )

    def _on_join(self, response: JoinGroupResponse, now_ms: int) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            return
        if self._on_error(response.error_code, now_ms):
            return
        self._member_id, self._generation = response.member_id, response.generation_id
        self._metadata = GroupMetadata(
            self._group, self._member_id, self._generation, self._settings.instance_id
        )
        self._joined, self._state, self._looked_up = response, _State.SYNC, False
        self._subscribers = [decode_subscription(each) for each in response.members]
        self._due_ms = now_ms

    def _sync(self, now_ms: int) -> Action:
        joined = self._joined
        assert joined is not None
        assignments: Sequence[SyncGroupRequestAssignment] = ()
        self._assigned_by = None
        if joined.leader == self._member_id:
            if not self._looked_up:
                return LookUp(frozenset[str]().union(*(each.topics for each in self._subscribers)))
            self._assigned_by = self._relevant()
            if not joined.skip_assignment:
                named = {each.name: each for each in self._settings.assignors}
                assigned = named[joined.protocol_name or ""].assign(self._subscribers, self._counts)
                assignments = [
                    SyncGroupRequestAssignment(
                        member_id=member, assignment=encode_assignment(partitions)
                    )
                    for member, partitions in assigned.items()
                ]
        return self._send(
            now_ms,
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._settings.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=joined.protocol_name,
                assignments=list(assignments),
            ),
        )

    def _on_sync(self, response: SyncGroupResponse, now_ms: int) -> None:
        self._joined = None
        if self._on_error(response.error_code, now_ms):
            return
        assigned = decode_assignment(response.assignment)
        revoked = self._owned - assigned
        if revoked:
            self._changes.append(Revoke(revoked))
        if assigned - self._owned:
            self._changes.append(Assign(assigned - self._owned))
        self._beat_ms = now_ms + self._settings.heartbeat_interval_ms
        self._state = _State.STABLE
        if revoked:
            self._state = _State.JOIN  # the next rebalance gives the partitions to others

    def _on_error(self, code: int, now_ms: int) -> bool:
        """Handle an error code; returns whether there was one. Raises errors that are permanent."""
        if code == ErrorCode.NONE:
            return False
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin()
        elif code in NOT_A_MEMBER:
            self._forgotten(ErrorCode(code))
        elif code in AGAIN:
            if self._state is _State.SYNC:
                self._rejoin()
            self._due_ms = self._beat_ms = now_ms + RETRY_MS
        else:
            self._lose()
            error = ErrorCode(code)
            raise MembershipFailed(error, f"group {self._group}: {error.name}")
        return True

    def _rejoin(self) -> None:
        self._state, self._joined, self._due_ms = _State.JOIN, None, 0
        if not self._cooperative and not isinstance(self.change, Lose):
            # Also drops an assignment that no poll has carried out.
            self._changes = [Revoke(self._owned)] if self._owned else []

    def _forgotten(self, code: ErrorCode | None) -> None:
        """The coordinator does not know the member or its generation: join again."""
        self._generation, self._joined = NO_GENERATION, None
        if code != ErrorCode.ILLEGAL_GENERATION:
            self._member_id = ""
        self._state, self._due_ms = _State.JOIN, 0
        self._lose()

    def _lose(self) -> None:
        self._changes = [Lose(self._owned)] if self._owned else []


RESPONSES: Final[Mapping[type[Message], type[Message]]] = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
}
