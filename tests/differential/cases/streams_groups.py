"""Requests of members and administrators of streams groups (KIP-1071)."""

from typing import Any

from differential.case import Case, Eventually, Step, case
from differential.requests import ONE, THREE, topic
from differential.symbols import topic_id
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
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
from penstock.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from penstock.wire.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

READING = Topology(0, [Subtopology("0", ["~t"])])
COUNTING = Topology(
    0,
    [
        Subtopology("0", ["~t"], repartition_sink_topics=["~r"]),
        Subtopology(
            "1",
            repartition_source_topics=[
                TopicInfo("~r", topic_configs=[KeyValue("retention.ms", "-1")])
            ],
            state_changelog_topics=[TopicInfo("~c")],
        ),
    ],
)


def enter(member_id: str = "a", topology: Topology | None = READING, **fields: Any) -> Any:
    given = {
        "group_id": "~g",
        "rebalance_timeout_ms": 60_000,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": member_id,
        **fields,
    }
    return StreamsGroupHeartbeatRequest(member_id=member_id, topology=topology, **given)


def beat(member_id: str = "a", epoch: int = 2, **fields: Any) -> StreamsGroupHeartbeatRequest:
    given = {"group_id": "~g", **fields}
    return StreamsGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **given)


def owning(*partitions: int, epoch: int = 2, **fields: Any) -> StreamsGroupHeartbeatRequest:
    tasks = [TaskIds("0", list(partitions))] if partitions else []
    return beat(epoch=epoch, active_tasks=tasks, standby_tasks=[], warmup_tasks=[], **fields)


def having(*active: TaskIds, **fields: Any) -> StreamsGroupHeartbeatRequest:
    given = {"standby_tasks": [], **fields}
    return beat(active_tasks=list(active), warmup_tasks=[], **given)


def described(*groups: str) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(list(groups or ("~g",)))


def is_ready(reply: Any) -> bool:
    """Kafka creates internal topics after its answer."""
    return not reply.status and bool(reply.active_tasks)


def with_topics(**fields: Any) -> Topology:
    return Topology(0, [Subtopology("0", ["~t"], **fields)])


def refused(name: str, *requests: Step) -> Case:
    return case(name, *requests, topics=ONE)


JOINED = Topology(
    0,
    [Subtopology("0", ["~t", "~u"], copartition_groups=[CopartitionGroup(source_topics=[0, 1])])],
)

LOOP = Topology(
    0,
    [
        Subtopology(
            "0", repartition_sink_topics=["~r"], repartition_source_topics=[TopicInfo("~s")]
        ),
        Subtopology(
            "1", repartition_sink_topics=["~s"], repartition_source_topics=[TopicInfo("~r")]
        ),
    ],
)
WITH_STATE = with_topics(state_changelog_topics=[TopicInfo("~c")])


def commit(member_id: str, epoch: int, name: str = "~t", partition: int = 0) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition, 7, 0, None)]
    return OffsetCommitRequest(
        group_id="~g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name, topic_id(name), partitions)],
    )


def fetched(member_id: str | None, epoch: int) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics("~t", topic_id("~t"), [0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup("~g", member_id, epoch, topics)])


def left_with(*requests: Step) -> tuple[Step, ...]:
    """Member a at epoch 3, after another one joined; partition 0 is still its own."""
    return (enter(), enter("b"), owning(0, 1, 2), *requests)


OFFSETS = [
    *(
        case(
            f"in a streams group, {name}", enter(), commit(member_id, epoch), topics=THREE, since=9
        )
        for name, member_id, epoch in (
            ("by its member", "a", 2),
            ("of a greater epoch", "a", 9),
            ("of a smaller epoch", "a", 1),
            ("of no epoch", "a", -1),
            ("by a stranger", "nobody", 2),
            ("by nobody", "", -1),
        )
    ),
    case("in a streams group, of an old version", enter(), commit("a", 2), topics=THREE, until=8),
    case(
        "in a streams group that is empty",
        enter(),
        beat(epoch=-1),
        commit("", -1),
        topics=THREE,
        since=9,
    ),
    case(
        "in a streams group, of another topic",
        enter(),
        commit("a", 2, "~u"),
        since=9,
        topics=(*THREE, topic("~u")),
    ),
    *(
        case(
            f"in a streams group, {name}", enter(), fetched(member_id, epoch), topics=THREE, since=9
        )
        for name, member_id, epoch in (
            ("by its member", "a", 2),
            ("of a greater epoch", "a", 9),
            ("of a smaller epoch", "a", 1),
            ("by a stranger", "nobody", 2),
            ("by nobody", None, -1),
        )
    ),
]

EPOCHS = [
    refused("epoch 0 again, then the old epoch", enter(), enter(), beat(epoch=2), beat(epoch=1)),
    case("the epoch before, with its tasks", *left_with(owning(0, epoch=2)), topics=THREE),
    refused("a task that is not there", enter(), owning(0, 1)),
    refused("a task of partition -1", enter(), owning(-1)),
    refused("a task of another subtopology", enter(), having(TaskIds("9", [0]))),
    refused("a standby that is not there", enter(), having(standby_tasks=[TaskIds("0", [4])])),
    refused("a standby of another subtopology", enter(), having(standby_tasks=[TaskIds("9", [0])])),
    refused("a task that is not there, of a stranger", enter(), owning(4, member_id="nobody")),
    refused("a task that is not there, of another epoch", enter(), owning(4, epoch=9)),
    case("a task before there are any", enter(), owning(0, epoch=2)),
    case(
        "a task that it has not got",
        enter(),
        enter("b"),
        owning(0, member_id="b", epoch=3),
        topics=THREE,
    ),
    refused("a task twice", enter(), having(TaskIds("0", [0]), TaskIds("0", [0]))),
    refused(
        "a task as active and as standby",
        enter(),
        having(TaskIds("0", [0]), standby_tasks=[TaskIds("0", [0])]),
    ),
    refused("the epoch before, with more tasks", enter(), enter("b"), owning(5, epoch=1)),
    refused("after it left", enter(), beat(epoch=-1), beat()),
    refused("leaves twice", enter(), beat(epoch=-1), beat(epoch=-1)),
    refused("leaves with what is not its own", enter(), beat("nobody", epoch=-1)),
    refused("a static leave of a dynamic member", enter(), beat(epoch=-2, instance_id="i")),
]

TOPOLOGIES = [
    refused("a loop", enter(topology=LOOP)),
    refused(
        "no topics at all",
        enter(topology=Topology(0, [Subtopology("0")])),
    ),
    case(
        "two sources are missing",
        enter(topology=Topology(0, [Subtopology("0", ["~t", "~u", "~v"])])),
        topics=ONE,
    ),
    case(
        "a source comes later",
        enter(),
        enter("b"),
        described(),
        api=StreamsGroupHeartbeatRequest,
    ),
    case(
        "a changelog with another number of partitions",
        enter(topology=WITH_STATE),
        topics=(topic(), topic("~c", 2)),
    ),
    case(
        "a repartition topic with another number of partitions",
        enter(topology=COUNTING),
        topics=(topic(), topic("~r", 2)),
    ),
    case(
        "a join with a repartition topic of another number",
        enter(
            topology=Topology(
                0,
                [
                    Subtopology(
                        "0",
                        ["~t"],
                        repartition_source_topics=[TopicInfo("~r", 2)],
                        copartition_groups=[
                            CopartitionGroup(source_topics=[0], repartition_source_topics=[0])
                        ],
                    )
                ],
            )
        ),
        topics=THREE,
    ),
    refused(
        "an older topology",
        enter(topology=Topology(2, READING.subtopologies)),
        enter("b", topology=Topology(1, [Subtopology("9", ["~t"])])),
    ),
    refused("the same member with another topology", enter(), enter(topology=WITH_STATE)),
]

HEARTBEATS = [
    case("one member", enter(), beat(), topics=THREE),
    case("joins again", enter(), enter(), topics=THREE),
    case(
        "leaves",
        enter(),
        beat(epoch=-1),
        described(),
        topics=ONE,
        api=StreamsGroupHeartbeatRequest,
    ),
    case(
        "two members",
        enter(),
        enter("b"),
        owning(0, 1, 2),
        topics=THREE,
    ),
    case("an endpoint", enter(user_endpoint=Endpoint("h", 80)), topics=THREE),
    case("shuts down", enter(), beat(shutdown_application=True), topics=ONE),
    case("without its source", enter()),
    case("topics that do not match", enter(topology=JOINED), topics=(topic(), topic("~u", 2))),
    case(
        "internal topics",
        Eventually(enter(topology=COUNTING), is_ready),
        topics=THREE,
        api=StreamsGroupHeartbeatRequest,
    ),
    case("no topology", enter(topology=None), topics=ONE),
    case(
        "a stale topology",
        enter(topology=Topology(2, READING.subtopologies)),
        enter("b", topology=Topology(1, READING.subtopologies)),
        topics=ONE,
    ),
    refused("another topology", enter(), enter("b", Topology(0, [Subtopology("7", ["~t"])]))),
    refused("a newer topology", enter(), enter("b", topology=Topology(1, READING.subtopologies))),
    refused("a greater epoch", enter(), beat(epoch=9)),
    refused("a smaller epoch", enter(), beat(epoch=1)),
    refused("an unknown member", enter(), beat("nobody")),
    refused("no such group", beat()),
    refused("leaves no such group", beat(epoch=-1)),
    refused("epoch -3", beat(epoch=-3)),
    refused("epoch -2", beat(epoch=-2)),
    refused("an empty group id", enter(group_id="")),
    refused("an empty member id", enter("")),
    refused("an empty rack", enter(rack_id="")),
    refused("an empty instance id", enter(instance_id="")),
    refused("no time-out", enter(rebalance_timeout_ms=-1)),
    refused("tasks at once", enter(active_tasks=[TaskIds("0", [0])])),
    refused("no lists of tasks", enter(active_tasks=None)),
    refused("one list of tasks", enter(), beat(active_tasks=[])),
    refused(
        "warm-up tasks",
        enter(),
        beat(active_tasks=[], standby_tasks=[], warmup_tasks=[TaskIds("0", [0])]),
    ),
    refused("a topology later", enter(), beat(topology=READING)),
    refused(
        "a regular expression",
        enter(topology=Topology(0, [Subtopology("0", source_topic_regex=["t.*"])])),
    ),
    refused(
        "a changelog with partitions",
        enter(topology=with_topics(state_changelog_topics=[TopicInfo("~c", 3)])),
    ),
    refused(
        "a repartition topic that nothing feeds",
        enter(topology=with_topics(repartition_source_topics=[TopicInfo("~r")])),
    ),
    refused(
        "in a streams group",
        enter(),
        ConsumerGroupHeartbeatRequest(
            group_id="~g",
            member_id="b",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["~t"],
            topic_partitions=[],
        ),
    ),
]

DESCRIPTIONS = [
    case("one member", enter(), described(), topics=THREE),
    case("two members", enter(), enter("b"), described(), topics=THREE),
    case("not ready", enter(), described()),
    case("none", described("~none", "")),
    case("a streams group, as a classic one", enter(), DescribeGroupsRequest(["~g"]), topics=ONE),
    case("a streams group with a member", enter(), DeleteGroupsRequest(["~g"]), topics=ONE),
    case(
        "deleted streams group",
        enter(),
        beat(epoch=-1),
        DeleteGroupsRequest(["~g"]),
        described(),
        topics=ONE,
    ),
]

CASES = [*HEARTBEATS, *EPOCHS, *TOPOLOGIES, *OFFSETS, *DESCRIPTIONS]
