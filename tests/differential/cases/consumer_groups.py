"""Requests of members and administrators of consumer protocol groups (KIP-848)."""

from differential.case import Case, Step, case
from differential.requests import ONE, THREE
from differential.symbols import topic_id
from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.list_groups import ListGroupsRequest

Owned = tuple[int, ...]


def enter(
    member_id: str = "~a",
    *,
    group: str = "~g",
    epoch: int = 0,
    instance: str | None = None,
    rack: str | None = None,
    timeout_ms: int = 10_000,
    topics: tuple[str, ...] | None = ("~t",),
    regex: str | None = None,
    assignor: str | None = "range",
    owned: Owned | None = (),
) -> ConsumerGroupHeartbeatRequest:
    """A first heartbeat; with another epoch, a full one. The assignor is `range`, because `uniform`
    may choose which partitions move.
    """
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=None if topics is None else list(topics),
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=_has(owned),
    )


def beat(
    member_id: str = "~a",
    epoch: int = 2,
    owned: Owned | None = None,
    *,
    group: str = "~g",
    instance: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat without changes, except perhaps the member's partitions of ~t."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        topic_partitions=_has(owned),
    )


def _has(owned: Owned | None) -> list[TopicPartitions] | None:
    if owned is None:
        return None
    return [TopicPartitions(topic_id("~t"), list(owned))] if owned else []


def described(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(list(groups or ("~g",)), operations)


ALONE: tuple[Step, ...] = (enter(),)
PAIR: tuple[Step, ...] = (enter(), enter("~b"))
STATIC: tuple[Step, ...] = (enter(instance="~i"),)

HEARTBEAT = [
    case("join", enter(), topics=THREE),
    case("join without an id", enter("")),
    case("join a group without a name", enter(group="")),
    case("join a topic that is not there", enter(topics=("~none",))),
    case("join no topics", enter(topics=())),
    case("join without a subscription", enter(topics=None)),
    case("join without a rebalance timeout", enter(timeout_ms=-1)),
    case("join with partitions", enter(owned=(0,)), topics=ONE),
    case("join without saying what one has", enter(owned=None)),
    case("join without a name for the instance", enter(instance="")),
    case("join without a name for the rack", enter(rack="")),
    case("join with an assignor that there is not", enter(assignor="best")),
    case("join with an assignor", enter(assignor="range"), described(), topics=THREE,
         api=ConsumerGroupHeartbeatRequest),
    case("join with what is no expression", enter(topics=None, regex="t("), since=1),
    case("join again", *ALONE, enter(), topics=THREE),
    case("join from another rack again", *ALONE, enter(rack="r"), beat(), described(),
         topics=ONE, api=ConsumerGroupHeartbeatRequest),
    case("go on", *ALONE, beat(), beat(owned=(0, 1, 2)), topics=THREE),
    case("go on, telling everything", *ALONE, enter(epoch=2, owned=(0,)), topics=ONE),
    case("subscribe anew", *ALONE, enter(epoch=2, topics=("~none",), owned=(0,)), beat("~a", 2),
         beat("~a", 2, ()), beat("~a", 3), topics=ONE),
    case("an epoch before", *PAIR, beat(epoch=1), topics=ONE),
    case("an epoch to come", *ALONE, beat(epoch=7), topics=ONE),
    case("an epoch to come, telling everything", *ALONE, enter(epoch=7, owned=(0,)), topics=ONE),
    case("an impossible epoch", *ALONE, beat(epoch=-3), topics=ONE),
    case("a member that nobody knows", beat("~nobody")),
    case("a member that the group does not know", *ALONE, beat("~nobody"), topics=ONE),
    case("two members share", *PAIR, beat(), beat("~b", 3), beat("~a", 2, (0, 1)), beat("~b", 3),
         topics=THREE),
    case("leave", *ALONE, beat(epoch=-1), beat(epoch=2), described(), topics=ONE,
         api=ConsumerGroupHeartbeatRequest),
    case("leave, and another goes on", *PAIR, beat(epoch=-1), beat("~b", 3), topics=ONE),
    case("leave a group that is not there", beat(epoch=-1)),
    case("leave without having come", *ALONE, beat("~nobody", -1), topics=ONE),
    case("leave for a while without an instance", *ALONE, beat(epoch=-2), topics=ONE),
    case("a static member leaves for a while", *STATIC, beat(epoch=-2, instance="~i"), described(),
         enter("~b", instance="~i"), beat(epoch=2, instance="~i"), topics=ONE,
         api=ConsumerGroupHeartbeatRequest),
    case("a static member is back under its id", *STATIC, beat(epoch=-2, instance="~i"),
         enter(instance="~i"), topics=ONE),
    case("a static member that is in use", *STATIC, enter("~b", instance="~i"), topics=ONE),
    case("a static member joins again", *STATIC, enter(instance="~i"), topics=ONE),
    case("a static member under a wrong id", *STATIC, beat("~b", 2, instance="~i"), topics=ONE),
    case("an unknown instance", *STATIC, beat("~a", 2, instance="~j"), topics=ONE),
    case("a static member leaves", *STATIC, beat(epoch=-1, instance="~i"), described(), topics=ONE,
         api=ConsumerGroupHeartbeatRequest),
]  # fmt: skip

DESCRIBE = [
    case("no group", described("~none")),
    case("a group without a name", described("")),
    case("none", ConsumerGroupDescribeRequest()),
    case("a member alone", *ALONE, described(), topics=THREE),
    case("a static member", *STATIC, described(), topics=ONE),
    case("while partitions move", *PAIR, described(), topics=ONE),
    case("one that members have left", *ALONE, beat(epoch=-1), described(), topics=ONE),
    case("what one may do", *ALONE, described(operations=True), topics=ONE),
    case("many", *ALONE, described("~g", "~none", "~g"), topics=ONE),
    case("as a classic group", *ALONE, DescribeGroupsRequest(["~g"]), topics=ONE),
    case("among all", *ALONE, ListGroupsRequest([], []), topics=ONE),
    case("deleted with a member", *ALONE, DeleteGroupsRequest(["~g"]), topics=ONE),
    case("deleted when it is empty", *ALONE, beat(epoch=-1), DeleteGroupsRequest(["~g"]),
         described(), topics=ONE, api=ConsumerGroupDescribeRequest),
]  # fmt: skip

CASES: list[Case] = [*HEARTBEAT, *DESCRIBE]
