"""Our client's memberships against our coordinator, without a network: one step at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.client.membership.member import (
    Assign,
    Change,
    Left,
    LookUp,
    Lose,
    Membership,
    Send,
    Wait,
)
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat
from penstock.coordinator.group.consumer.records import assignment_of, by_topic
from penstock.coordinator.group.errors import MemberIdRequired
from penstock.coordinator.result import PendingReply
from penstock.errors import KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.wire.schema import Message
from support.groups.consumer_members import Cluster
from support.groups.group_transcript import GROUP

Respond = Callable[[Any], Message]


@dataclass
class DrivenMember:
    """A membership with the request that it has in flight."""

    cluster: Cluster
    name: str
    membership: Membership
    changes: list[Change] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    removed: bool = False
    """The coordinator has removed the member, which does not know it yet."""
    _pending: tuple[PendingReply[Any], Respond] | None = None

    @property
    def now_ms(self) -> int:
        return round(self.cluster.loop.now_s * 1000)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.membership.owned

    def poll(self) -> None:
        """Polls as an application does: takes one change."""
        self.membership.polled(self.now_ms)
        change = self.membership.change
        if change is not None:
            self.changes.append(change)
            self.membership.changed(change, self.now_ms)
            if isinstance(change, Lose):
                self.removed = False
            if isinstance(change, Assign):
                assert not change.partitions & (self.owned - change.partitions)

    def step(self) -> None:
        """Receives the response if it has come; otherwise does the next thing."""
        if self._pending is not None:
            pending, respond = self._pending
            self.cluster.loop.advance()
            if pending.reply is not None:
                self._pending = None
                self.membership.received(respond(pending.reply), self.now_ms)
            return
        match self.membership.next(self.now_ms):
            case Send(request):
                self.sent.append(request)
                self._pending = self._asked(request)
                self.step()
            case LookUp():
                topics = self.cluster.topics
                self.membership.topics_found(
                    {name: len(topic.partitions) for name, topic in topics.items()},
                    {topic.id: name for name, topic in topics.items()},
                )
            case Wait() | Left():
                pass

    def lose_response(self) -> None:
        if self._pending is not None:
            self._pending = None
            self.membership.failed(self.now_ms)

    def removed_by_admin(self) -> None:
        """The coordinator removes the member, as after a session timeout."""
        member = self.membership.metadata
        if member.generation < 0:
            return
        self.removed = bool(self.owned)
        groups = self.cluster.groups
        if GROUP in self.cluster.shard.consumer_groups:
            groups.consumer_heartbeat(
                GROUP, ConsumerHeartbeat(member_id=member.member_id, epoch=-1)
            )
        else:
            groups.leave(GROUP, (LeavingMember(member.member_id),))
        self.cluster.loop.advance()

    def _asked(self, request: Message) -> tuple[PendingReply[Any], Respond]:
        groups = self.cluster.groups
        match request:
            case JoinGroupRequest():
                join = GroupJoin(
                    member_id=request.member_id,
                    new_member_id="" if request.member_id else f"{self.name}-{len(self.sent)}",
                    session_timeout_ms=request.session_timeout_ms,
                    rebalance_timeout_ms=request.rebalance_timeout_ms,
                    protocol_type=request.protocol_type,
                    protocols=tuple(
                        ProtocolMetadata(each.name, each.metadata) for each in request.protocols
                    ),
                    needs_known_id=True,
                )
                return groups.join(GROUP, join), _joined
            case SyncGroupRequest():
                sync = GroupSync(
                    member_id=request.member_id,
                    generation=request.generation_id,
                    protocol_type=request.protocol_type,
                    protocol=request.protocol_name,
                    assignments={each.member_id: each.assignment for each in request.assignments},
                )
                return groups.sync(GROUP, sync), _synced
            case HeartbeatRequest():
                pending = groups.heartbeat(GROUP, request.member_id, request.generation_id)
                return pending, lambda reply: HeartbeatResponse(error_code=_code(reply))
            case LeaveGroupRequest():
                left = groups.leave(GROUP, (LeavingMember(request.member_id),))
                return left, lambda reply: LeaveGroupResponse(error_code=_code(reply))
            case ConsumerGroupHeartbeatRequest():
                owned, names = request.topic_partitions, request.subscribed_topic_names
                heartbeat = ConsumerHeartbeat(
                    member_id=request.member_id,
                    epoch=request.member_epoch,
                    rebalance_timeout_ms=request.rebalance_timeout_ms,
                    topics=None if names is None else frozenset(names),
                    regex=request.subscribed_topic_regex,
                    owned=None if owned is None else assignment_of(owned),
                )
                return groups.consumer_heartbeat(GROUP, heartbeat), _beaten
            case _:
                raise AssertionError(f"a member does not send {request}")


def _code(reply: object) -> int:
    return reply.code if isinstance(reply, KafkaError) else 0


def _joined(reply: Any) -> Message:
    if isinstance(reply, KafkaError):
        known = reply.member_id if isinstance(reply, MemberIdRequired) else ""
        return JoinGroupResponse(error_code=reply.code, member_id=known)
    return JoinGroupResponse(
        generation_id=reply.generation,
        protocol_name=reply.protocol or "",
        leader=reply.leader or "",
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(member_id=each.id, metadata=each.metadata(reply.protocol))
            for each in reply.members
        ],
    )


def _synced(reply: Any) -> Message:
    if isinstance(reply, KafkaError):
        return SyncGroupResponse(error_code=reply.code)
    return SyncGroupResponse(assignment=reply.assignment)


def _beaten(reply: Any) -> Message:
    if isinstance(reply, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=reply.code, error_message=str(reply))
    assigned = reply.assignment
    return ConsumerGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.interval_ms,
        assignment=None
        if assigned is None
        else Assignment([TopicPartitions(*each) for each in by_topic(assigned)]),
    )
