"""Groups that move between the classic and the consumer protocol, and their members' responses."""

from differential.case import At, Case, Step, case
from differential.cases.consumer_groups import beat, described, enter
from differential.requests import ONE, THREE
from differential.symbols import member, topic_id
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from penstock.wire.messages.consumer_protocol_assignment import TopicPartition as Assigned
from penstock.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from penstock.wire.messages.consumer_protocol_subscription import TopicPartition as Owned
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

FIRST, SECOND = member(1), member(2)


def subscribed(*topics: str, owned: tuple[int, ...] = (), version: int = 1) -> bytes:
    reported = ConsumerProtocolSubscription(
        topics=list(topics or ("~t",)),
        owned_partitions=[Owned("~t", list(owned))] if owned else [],
    )
    return bytes([0, version]) + encode(reported, version)


def share(*partitions: int, user_data: bytes | None = None) -> bytes:
    reported = ConsumerProtocolAssignment([Assigned("~t", list(partitions))], user_data)
    return bytes([0, 1]) + encode(reported, 1)


def join(
    member_id: str = "",
    *,
    instance: str | None = None,
    kind: str = "consumer",
    strategies: tuple[str, ...] = ("range",),
    metadata: bytes | None = None,
    session_ms: int = 10_000,
) -> JoinGroupRequest:
    reported = subscribed() if metadata is None else metadata
    return JoinGroupRequest(
        group_id="~g",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name, reported) for name in strategies],
    )


def sync(
    member_id: str,
    generation: int,
    *shares: tuple[str, bytes],
    instance: str | None = None,
    kind: str | None = "consumer",
    strategy: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="~g",
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=strategy,
        assignments=[SyncGroupRequestAssignment(*each) for each in shares],
    )


def alive(member_id: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest("~g", generation, member_id, instance)


def leave(*members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id="~g",
        member_id=members[0][0],
        members=[MemberIdentity(*each) for each in members],
    )


def commit(member_id: str, generation: int, instance: str | None = None) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="~g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[
            OffsetCommitRequestTopic(
                name="~t",
                topic_id=topic_id("~t"),
                partitions=[OffsetCommitRequestPartition(0, 5, 0, "note")],
            )
        ],
    )


def fetch(member_id: str | None, epoch: int) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics("~t", topic_id("~t"), [0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("~g", member_id, epoch, topics)])


CLASSIC: tuple[Step, ...] = (
    At(9, join()),
    At(9, join(FIRST)),
    At(5, sync(FIRST, 1, (FIRST, share(0, 1, 2)))),
)
"""A classic group of one member, FIRST, that has all of ~t."""

MIXED: tuple[Step, ...] = (*CLASSIC, At(1, enter("~b")))
"""CLASSIC, and SECOND of the consumer protocol has joined: FIRST does not know it yet."""

SETTLED: tuple[Step, ...] = (
    *MIXED,
    At(9, join(FIRST)),
    At(5, sync(FIRST, 2)),
    At(1, beat("~b", 2)),
)
"""Both members know their assignments."""

GUEST: tuple[Step, ...] = (At(1, enter("~a")), At(9, join("~b")))
"""A consumer protocol group that a classic member, SECOND, has joined."""

STATIC: tuple[Step, ...] = (
    At(9, join(instance="~i")),
    At(5, sync(FIRST, 1, (FIRST, share(0, 1, 2)), instance="~i")),
)


def kept(name: str, assigned: bytes) -> Case:
    """A classic group with these bytes as assignment."""
    return case(name, *CLASSIC[:2], At(5, sync(FIRST, 1, (FIRST, assigned))), enter("~b"),
                DescribeGroupsRequest(["~g"]), topics=THREE,
                api=ConsumerGroupHeartbeatRequest)  # fmt: skip


UPGRADE = [
    case("a classic group is upgraded", *CLASSIC, enter("~b"), described(),
         DescribeGroupsRequest(["~g"]), ListGroupsRequest([], []), topics=THREE,
         api=ConsumerGroupHeartbeatRequest),
    case("its members come over", *CLASSIC, enter("~b"), alive(FIRST, 1), At(9, join(FIRST)),
         alive(FIRST, 2), At(5, sync(FIRST, 2)), beat("~b", 2), alive(FIRST, 2), described(),
         topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("a cooperative member comes over", *CLASSIC, enter("~b"), alive(FIRST, 1),
         At(9, join(FIRST, metadata=subscribed(owned=(0, 1, 2)))), alive(FIRST, 1),
         At(5, sync(FIRST, 1)), beat("~b", 2),
         At(9, join(FIRST, metadata=subscribed(owned=(2,)))), At(5, sync(FIRST, 2)),
         beat("~b", 2), alive(FIRST, 2), described(), topics=THREE,
         api=ConsumerGroupHeartbeatRequest),
    case("a classic group without members", *CLASSIC, At(5, leave((FIRST, None))), enter("~b"),
         topics=ONE),
    case("a classic group where an id was given", At(9, join()), enter("~b"), At(9, join(FIRST)),
         topics=ONE, api=ConsumerGroupHeartbeatRequest),
    case("a classic group before its sync", *CLASSIC[:2], enter("~b"), At(5, sync(FIRST, 1)),
         alive(FIRST, 1), described(), topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("a classic group of connectors", At(9, join(kind="connect")),
         At(9, join(FIRST, kind="connect")), enter("~b"), topics=ONE),
    case("a static member", *STATIC, enter("~b"), described(), topics=THREE,
         api=ConsumerGroupHeartbeatRequest),
    case("a static member comes with the other protocol", *STATIC, enter("~b", instance="~i"),
         alive(FIRST, 1, "~i"), described(), topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("not by a heartbeat that does not join", *CLASSIC, beat("~b", 1), topics=ONE),
    case("not by leaving", *CLASSIC, beat(FIRST, -1), topics=ONE),
    case("under the same id", *CLASSIC, enter(FIRST), described(), topics=THREE,
         api=ConsumerGroupHeartbeatRequest),
    kept("shares that nobody can read", b"mine"),
    kept("shares with the assignor's own data", share(0, user_data=b"x")),
    kept("no shares", b""),
    kept("shares of partitions that are not there", share(0, 7)),
]  # fmt: skip

JOIN = [
    case("a group of the consumer protocol", At(1, enter("~a")), join(), topics=THREE),
    case("a group of the consumer protocol, with an id", At(1, enter("~a")), join("~b"),
         described(), topics=THREE, api=JoinGroupRequest),
    case("a group of the consumer protocol that is empty", At(1, enter("~a")),
         At(1, beat("~a", -1)), join(), DescribeGroupsRequest(["~g"]), topics=ONE,
         api=JoinGroupRequest, until=3),
    case("a group of the consumer protocol that is empty, with an id", At(1, enter("~a")),
         At(1, beat("~a", -1)), join("~b"), topics=ONE),
    case("a group of the consumer protocol, of another type", At(1, enter("~a")),
         join("~b", kind="connect"), topics=ONE),
    case("a group of the consumer protocol, without strategies", At(1, enter("~a")),
         join("~b", strategies=()), topics=ONE),
    case("a group of the consumer protocol, with bytes", At(1, enter("~a")),
         join("~b", metadata=b"bytes"), topics=ONE),
    case("a group of the consumer protocol, with a short session", At(1, enter("~a")),
         join("~b", session_ms=1), topics=ONE),
    case("a mixed group with other strategies", *GUEST, join("~c", strategies=("other",)),
         join("~c", strategies=("other", "range")), topics=ONE),
    case("a mixed group again", *GUEST, join(SECOND), join(SECOND), topics=THREE),
    case("a mixed group, subscribed anew", *GUEST,
         join(SECOND, metadata=subscribed("~none")), described(), topics=THREE,
         api=JoinGroupRequest),
    case("a group of the consumer protocol, as its member", At(1, enter("~a")), join("~a"),
         described(), topics=THREE, api=JoinGroupRequest),
    case("a group of the consumer protocol, as a static member", At(1, enter("~a")),
         join(instance="~i"), described(), topics=THREE, api=JoinGroupRequest, since=5),
    case("a group of the consumer protocol, under a wrong id", At(1, enter("~a", instance="~i")),
         join("~b", instance="~i"), topics=THREE, since=5),
    case("a group of the consumer protocol, as an unknown instance with an id",
         At(1, enter("~a")), join("~b", instance="~i"), topics=THREE, since=5),
]  # fmt: skip

MEMBERS = [
    case("a mixed group, another generation", *GUEST, sync(SECOND, 2), topics=ONE),
    case("a mixed group, another strategy", *GUEST, sync(SECOND, 3, strategy="other"),
         topics=ONE, since=5),
    case("a mixed group, another type", *GUEST, sync(SECOND, 3, kind="connect"), topics=ONE,
         since=5),
    case("a mixed group, without a strategy", *GUEST, sync(SECOND, 3, kind=None, strategy=None),
         topics=ONE, since=5),
    case("a mixed group", *GUEST, sync(SECOND, 3), sync(SECOND, 3), topics=THREE),
    case("a mixed group that has moved on", *GUEST, At(1, enter("~c")), sync(SECOND, 3),
         topics=THREE),
    case("a mixed group, as one of the consumer protocol", *GUEST, sync("~a", 3), topics=ONE),
    case("a mixed group, as nobody", *GUEST, sync("~nobody", 3), topics=ONE),
    case("a mixed group", *GUEST, alive(SECOND, 3), topics=ONE),
    case("a mixed group, another generation", *GUEST, alive(SECOND, 2), topics=ONE),
    case("a mixed group, as one of the consumer protocol", *GUEST, alive("~a", 2), topics=ONE),
    case("a mixed group, as nobody", *GUEST, alive("~nobody", 3), topics=ONE),
    case("a mixed group when partitions are free", *GUEST, At(5, sync(SECOND, 3)),
         At(1, beat("~a", 2, (0, 1, 2))), alive(SECOND, 3), At(1, beat("~a", 2, (0, 1))),
         alive(SECOND, 3), At(9, join(SECOND)), At(5, sync(SECOND, 3)), topics=THREE,
         api=HeartbeatRequest),
    case("a mixed group", *GUEST, leave((SECOND, None)), described(), topics=ONE,
         api=LeaveGroupRequest),
    case("a mixed group, as nobody", *GUEST, leave(("~nobody", None)), topics=ONE),
    case("a mixed group, as one of the consumer protocol", *SETTLED, leave(("~b", None)),
         DescribeGroupsRequest(["~g"]), topics=ONE, api=LeaveGroupRequest),
    case("a group of the consumer protocol by its instance", At(1, enter("~a", instance="~i")),
         leave(("", "~i")), described(), topics=ONE, api=LeaveGroupRequest, since=3),
    case("a group of the consumer protocol, an unknown instance",
         At(1, enter("~a", instance="~i")), leave(("", "~j")), leave(("~b", "~i")), topics=ONE,
         since=3),
]  # fmt: skip

OFFSETS = [
    case("in a mixed group, of the classic protocol", *SETTLED, commit(FIRST, 2), fetch(None, -1),
         topics=THREE, api=OffsetCommitRequest),
    case("in a mixed group, of another generation", *SETTLED, commit(FIRST, 1), topics=THREE),
    case("in a mixed group, of the consumer protocol", *SETTLED, commit("~b", 2), topics=THREE),
    case("in a mixed group, of another epoch", *SETTLED, commit("~b", 3), topics=THREE),
    case("in a mixed group, nobody", *SETTLED, commit("", -1), topics=THREE),
    case("in a mixed group, by an unknown member", *SETTLED, commit("~nobody", 2), topics=THREE),
    case("in a mixed group, by the classic protocol", *SETTLED, fetch(FIRST, 2), fetch(FIRST, 1),
         topics=THREE, since=9),
    case("in a mixed group, by the consumer protocol", *SETTLED, fetch("~b", 2), fetch("~b", 7),
         topics=THREE, since=9),
    case("after an upgrade", *CLASSIC, commit(FIRST, 1), At(1, enter("~b")), commit(FIRST, 1),
         fetch("~b", 2), topics=THREE, api=OffsetCommitRequest),
]  # fmt: skip

DOWNGRADE = [
    case("the last of the consumer protocol leaves", *SETTLED, beat("~b", -1),
         DescribeGroupsRequest(["~g"]), ListGroupsRequest([], []), described(), alive(FIRST, 2),
         At(9, join(FIRST)), At(5, sync(FIRST, 3, (FIRST, share(0, 1, 2)))), alive(FIRST, 3),
         DescribeGroupsRequest(["~g"]), topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("and comes back", *SETTLED, beat("~b", -1), enter("~b"), alive(FIRST, 2), described(),
         topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("one of two of the consumer protocol leaves", *SETTLED, At(1, enter("~c")),
         beat("~b", -1), described(), topics=THREE, api=ConsumerGroupHeartbeatRequest),
    case("the only member leaves", At(1, enter("~a")), beat("~a", -1), described(), topics=ONE,
         api=ConsumerGroupHeartbeatRequest),
    case("a static member comes with the classic protocol", At(1, enter("~a", instance="~i")),
         join(instance="~i"), DescribeGroupsRequest(["~g"]), At(5, sync(SECOND, 2, instance="~i")),
         alive(SECOND, 2, "~i"), topics=THREE, api=JoinGroupRequest, since=5),
    case("a mixed group", *SETTLED, described(), topics=THREE),
    case("with members of both kinds", *SETTLED, DeleteGroupsRequest(["~g"]), topics=ONE),
]  # fmt: skip

CASES: list[Case] = [*UPGRADE, *JOIN, *MEMBERS, *OFFSETS, *DOWNGRADE]
