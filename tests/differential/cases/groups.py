"""FindCoordinator, and requests of members and administrators of classic groups."""

from differential.case import At, Case, Step, case
from differential.requests import ONE, THREE
from differential.symbols import member, topic_id
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

INTERNAL = "__consumer_offsets"
"""A topic with the same name on both brokers, for use inside opaque bytes."""

SUBSCRIBED = b"\0\0" + encode(ConsumerProtocolSubscription(topics=[INTERNAL]), 0)

FIND = [
    case("a group", FindCoordinatorRequest(key="~g", coordinator_keys=["~g"])),
    case("a group without a name", FindCoordinatorRequest(key="", coordinator_keys=[""])),
    case("many groups", FindCoordinatorRequest(coordinator_keys=["~a", "~b", "~a"]), since=4),
    case("none", FindCoordinatorRequest(coordinator_keys=[]), since=4),
    case("a key of type 9", FindCoordinatorRequest(key="~g", key_type=9, coordinator_keys=["~g"]),
         since=1),
]  # fmt: skip


def _join(
    member_id: str = "",
    *,
    group: str = "~g",
    instance: str | None = None,
    session_ms: int = 10_000,
    kind: str = "consumer",
    strategies: tuple[str, ...] = ("range",),
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name, SUBSCRIBED) for name in strategies],
    )


def _sync(
    member_id: str,
    generation: int = 1,
    *,
    group: str = "~g",
    instance: str | None = None,
    shares: tuple[tuple[str, bytes], ...] = (),
    kind: str | None = "consumer",
    strategy: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=strategy,
        assignments=[SyncGroupRequestAssignment(*each) for each in shares],
    )


FIRST = member(1)
JOINED: tuple[Step, ...] = (At(9, _join()), At(9, _join(FIRST)))
STABLE: tuple[Step, ...] = (*JOINED, At(5, _sync(FIRST, shares=((FIRST, b"mine"),))))
STATIC: tuple[Step, ...] = (
    At(9, _join(instance="~i")),
    At(5, _sync(FIRST, instance="~i", shares=((FIRST, b"mine"),))),
)
"""A group of one member in generation 1, dynamic or static."""

JOIN = [
    case("alone, without an id", _join(), until=3),
    case("alone", _join(), _join(FIRST), since=4),
    case("a static member", _join(instance="~i"), since=5),
    case("a static member comes back", *STATIC, _join(instance="~i"), At(5, _sync(FIRST)),
         At(5, _sync(member(2), instance="~i")), api=JoinGroupRequest, since=5),
    case("a static member comes back with another strategy", *STATIC,
         _join(instance="~i", strategies=("other",)), since=5),
    case("a static member under its old id", *STATIC, _join(FIRST, instance="~i"), since=5),
    case("a static member under a wrong id", *STATIC, _join("~wrong", instance="~i"), since=5),
    case("an unknown static member with an id", *STATIC, _join(FIRST, instance="~j"), since=5),
    case("a member that nobody knows", _join("~nobody")),
    case("a member that the group does not know", *STABLE, _join("~nobody")),
    case("without a group's name", _join(group="")),
    case("a session that is too short", _join(session_ms=5_999)),
    case("a session that is too long", _join(session_ms=1_800_001)),
    case("without a type", _join(kind="")),
    case("without strategies", _join(strategies=())),
    case("another type", *STABLE, _join(kind="connect")),
    case("a strategy that the member does not know", *STABLE, _join(strategies=("other",))),
    case("the leader again", *STABLE, _join(FIRST)),
    case("the leader with more strategies", *STABLE, _join(FIRST, strategies=("other", "range"))),
    case("the leader before it has synced", *JOINED, _join(FIRST)),
    case("the leader with another strategy before it has synced", *JOINED,
         _join(FIRST, strategies=("range", "other"))),
    case("a connector", _join(kind="connect", strategies=("sessioned", "compatible")), until=3),
]  # fmt: skip

SYNC = [
    case("the leader", *JOINED, _sync(FIRST, shares=((FIRST, b"mine"),))),
    case("the leader without shares", *JOINED, _sync(FIRST)),
    case("the leader with shares of others", *JOINED, _sync(FIRST, shares=(("x", b"y"),))),
    case("again", *STABLE, _sync(FIRST)),
    case("another generation", *STABLE, _sync(FIRST, 2)),
    case("no generation", *STABLE, _sync(FIRST, -1)),
    case("a member that nobody knows", _sync("~nobody")),
    case("a member that the group does not know", *STABLE, _sync("~nobody")),
    case("without a group's name", _sync("~nobody", group="")),
    case("another type", *STABLE, _sync(FIRST, kind="connect"), since=5),
    case("another strategy", *STABLE, _sync(FIRST, strategy="other"), since=5),
    case("a static member", *STATIC, _sync(FIRST, instance="~i"), since=3),
    case("a static member under a wrong id", *STATIC, _sync("~wrong", instance="~i"), since=3),
    case("an unknown static member", *STATIC, _sync(FIRST, instance="~j"), since=3),
]  # fmt: skip


def _beat(
    member_id: str, generation: int = 1, *, group: str = "~g", instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(group, generation, member_id, instance)


HEARTBEAT = [
    case("a member", *STABLE, _beat(FIRST)),
    case("before the sync", *JOINED, _beat(FIRST)),
    case("another generation", *STABLE, _beat(FIRST, 0)),
    case("a member that nobody knows", _beat("~nobody")),
    case("a member that the group does not know", *STABLE, _beat("~nobody")),
    case("a member that was only given an id", At(9, _join()), _beat(FIRST, 0)),
    case("without a group's name", _beat("~nobody", group="")),
    case("a static member", *STATIC, _beat(FIRST, instance="~i"), since=3),
    case("a static member under a wrong id", *STATIC, _beat("~wrong", instance="~i"), since=3),
    case("an unknown static member", *STATIC, _beat(FIRST, instance="~j"), since=3),
]  # fmt: skip


def _leave(*members: str | tuple[str, str | None], group: str = "~g") -> LeaveGroupRequest:
    first = members[0] if members and isinstance(members[0], str) else ""
    return LeaveGroupRequest(
        group_id=group,
        member_id=first,
        members=[
            MemberIdentity(each) if isinstance(each, str) else MemberIdentity(*each)
            for each in members
        ],
    )


def _describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(
        groups=list(groups or ("~g",)), include_authorized_operations=operations
    )


LEAVE = [
    case("the only member", *STABLE, _leave(FIRST), _describe(), api=LeaveGroupRequest),
    case("a member that nobody knows", _leave("~nobody")),
    case("a member that the group does not know", *STABLE, _leave("~nobody")),
    case("a member that was only given an id", At(9, _join()), _leave(FIRST)),
    case("without a group's name", _leave("~nobody", group="")),
    case("good and unknown ones", *STABLE, _leave(FIRST, "~nobody"), since=3),
    case("twice", *STABLE, _leave(FIRST, FIRST), since=3),
    case("nobody", *STABLE, _leave(), since=3),
    case("a static member by its instance", *STATIC, _leave(("", "~i")), since=3),
    case("an unknown instance", *STATIC, _leave(("", "~j")), since=3),
    case("a static member under a wrong id", *STATIC, _leave(("~wrong", "~i")), since=3),
    case("a static member by its id", *STATIC, _leave((FIRST, None)), since=3),
]  # fmt: skip


def _commit(
    *offsets: int,
    group: str = "~g",
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
    to: str = "~t",
    first: int = 0,
    metadata: str | None = "note",
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=to,
                topic_id=topic_id(to),
                partitions=[
                    OffsetCommitRequestPartition(index, offset, 0, metadata)
                    for index, offset in enumerate(offsets, first)
                ],
            )
        ],
    )


def _fetch(
    *partitions: int, group: str = "~g", of: str = "~t", everything: bool = False
) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(of, topic_id(of), list(partitions))]
    return OffsetFetchRequest(
        group_id=group,
        topics=None if everything else [OffsetFetchRequestTopic(of, list(partitions))],
        groups=[OffsetFetchRequestGroup(group, topics=None if everything else topics)],
    )


COMMIT = [
    case("without membership", _commit(5, 6), _fetch(0, 1, 2), _describe(), topics=THREE,
         api=OffsetCommitRequest),
    case("again, lower", _commit(5), _commit(2), _fetch(0), topics=ONE, api=OffsetCommitRequest),
    case("a negative offset", _commit(-1), _fetch(0), topics=ONE, api=OffsetCommitRequest),
    case("without metadata", _commit(5, metadata=None), _fetch(0), topics=ONE,
         api=OffsetCommitRequest),
    case("metadata at the limit", _commit(5, metadata="m" * 4096), topics=ONE),
    case("metadata beyond the limit", _commit(5, metadata="m" * 4097), _fetch(0), topics=ONE,
         api=OffsetCommitRequest),
    case("a topic that is not there", _commit(5, to="~none")),
    case("a partition that is not there", _commit(5, 6), topics=ONE),
    case("no partitions", _commit(), topics=ONE),
    case("a group without a name", _commit(5, group=""), topics=ONE),
    case("a time to keep it", _commit(5, retention_ms=60_000), _fetch(0), topics=ONE,
         api=OffsetCommitRequest, until=4),
    case("a member", *STABLE, _commit(5, generation=1, member_id=FIRST), _fetch(0), topics=ONE,
         api=OffsetCommitRequest),
    case("a member before the sync", *JOINED, _commit(5, generation=1, member_id=FIRST),
         topics=ONE),
    case("a member of another generation", *STABLE, _commit(5, generation=0, member_id=FIRST),
         topics=ONE),
    case("a member that the group does not know", *STABLE,
         _commit(5, generation=1, member_id="~nobody"), topics=ONE),
    case("nobody, while there are members", *STABLE, _commit(5), topics=ONE),
    case("a generation of no group", _commit(5, generation=1, member_id="~nobody"), topics=ONE),
    case("a static member", *STATIC, _commit(5, generation=1, member_id=FIRST, instance="~i"),
         topics=ONE, since=7),
    case("a static member under a wrong id", *STATIC,
         _commit(5, generation=1, member_id="~wrong", instance="~i"), topics=ONE, since=7),
]  # fmt: skip

FETCH = [
    case("nothing committed", _fetch(0), topics=ONE),
    case("a topic that is not there", _commit(5), _fetch(0, of="~none"), topics=ONE),
    case("everything", _commit(5, 6), _fetch(everything=True), topics=THREE, since=2),
    case("everything of nobody", _fetch(everything=True), topics=ONE, since=2),
    case("a group without a name", _fetch(0, group=""), topics=ONE),
    case("many groups", _commit(5, group="~a"), _commit(6, group="~b"),
         OffsetFetchRequest(groups=[
             OffsetFetchRequestGroup(name, topics=[
                 OffsetFetchRequestTopics("~t", topic_id("~t"), [0])])
             for name in ("~a", "~none", "~b")]), topics=ONE, since=8),
    case("no groups", OffsetFetchRequest(), since=8),
]  # fmt: skip


def _forget(*partitions: int, group: str = "~g", of: str = "~t") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group, [OffsetDeleteRequestTopic(of, [OffsetDeleteRequestPartition(p) for p in partitions])]
    )


DELETE_OFFSETS = [
    case("without members", _commit(5, 6), _forget(0), _fetch(0, 1), topics=THREE,
         api=OffsetDeleteRequest),
    case("what was not committed", _commit(5), _forget(1), topics=THREE),
    case("a partition that is not there", _commit(5), _forget(0, 7), topics=ONE),
    case("a topic that is not there", _commit(5), _forget(0, of="~none"), topics=ONE),
    case("no group", _forget(0), topics=ONE),
    case("a group without a name", _forget(0, group=""), topics=ONE),
    case("a topic that a member reads", *STABLE, _forget(0, of=INTERNAL)),
    case("a topic that no member reads", *STABLE, _commit(5, generation=1, member_id=FIRST),
         _forget(0), _fetch(0), topics=ONE, api=OffsetDeleteRequest),
    case("members of another type", At(9, _join(kind="connect")),
         At(9, _join(FIRST, kind="connect")), _forget(0), topics=ONE),
]  # fmt: skip

DELETE_GROUPS = [
    case("without members", _commit(5), DeleteGroupsRequest(["~g"]), _describe(), _fetch(0),
         topics=ONE, api=DeleteGroupsRequest),
    case("with members", *STABLE, DeleteGroupsRequest(["~g"])),
    case("that members have left", *STABLE, At(5, _leave(FIRST)), DeleteGroupsRequest(["~g"])),
    case("no group, and one without a name", DeleteGroupsRequest(["~none", ""])),
    case("the same twice", _commit(5), DeleteGroupsRequest(["~g", "~g"]), topics=ONE),
    case("none", DeleteGroupsRequest([])),
]  # fmt: skip

DESCRIBE = [
    case("no group", _describe("~none")),
    case("a group without a name", _describe("")),
    case("stable", *STABLE, _describe()),
    case("static", *STATIC, _describe()),
    case("completing its rebalance", *JOINED, _describe()),
    case("a member was only given an id", At(9, _join()), _describe()),
    case("empty after members left", *STABLE, At(5, _leave(FIRST)), _describe()),
    case("what one may do", *STABLE, _describe(operations=True), since=3),
    case("many", *STABLE, _describe("~g", "~none", "~g")),
]  # fmt: skip

ONE_OF_EACH: tuple[Step, ...] = (*STABLE, _commit(5, group="~simple"))


def _list(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> ListGroupsRequest:
    return ListGroupsRequest(list(states), list(types))


LIST = [
    case("all", *ONE_OF_EACH, _list(), topics=ONE),
    case("stable ones", *ONE_OF_EACH, _list(("Stable",)), topics=ONE, since=4),
    case("by states in small letters", *ONE_OF_EACH, _list(("stable", "empty")), topics=ONE,
         since=4),
    case("a state that there is not", *ONE_OF_EACH, _list(("Asleep",)), topics=ONE, since=4),
    case("classic ones", *ONE_OF_EACH, _list((), ("Classic",)), topics=ONE, since=5),
    case("consumer ones", *ONE_OF_EACH, _list((), ("consumer",)), topics=ONE, since=5),
    case("a type that there is not", *ONE_OF_EACH, _list((), ("other",)), topics=ONE, since=5),
]  # fmt: skip

CASES: list[Case] = [
    *FIND, *JOIN, *SYNC, *HEARTBEAT, *LEAVE, *COMMIT, *FETCH, *DELETE_OFFSETS, *DELETE_GROUPS,
    *DESCRIBE, *LIST,
]  # fmt: skip
