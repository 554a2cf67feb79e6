"""The rules of streams groups: topologies, moving tasks, timeouts, failover."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.config.streams import StreamsConfig
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import ProtocolMetadata
from penstock.coordinator.group.consumer.errors import (
    FencedMemberEpoch,
    InvalidHeartbeat,
    StaleMemberEpoch,
)
from penstock.coordinator.group.errors import (
    GroupIdNotFound,
    GroupMaxSizeReached,
    GroupSubscribedToTopic,
    InconsistentGroupProtocol,
    NonEmptyGroup,
    UnknownMemberId,
)
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.streams.errors import InvalidTopology
from penstock.coordinator.group.streams.group import StreamsGroup, StreamsGroupState
from penstock.coordinator.group.streams.member import StreamsEndpoint, StreamsMemberState
from penstock.coordinator.group.streams.task import NOTHING, TaskId
from penstock.coordinator.group.streams.topology import StatusCode
from penstock.errors import InvalidRequest, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.streams_group_topology_value import Subtopology
from support.groups.group_transcript import GROUP
from support.groups.streams_members import (
    AT_ONCE,
    StreamsCluster,
    StreamsThread,
    internal,
    reading,
    settle,
    topology,
)


@pytest.fixture
def cluster() -> StreamsCluster:
    return StreamsCluster()


@pytest.fixture
def a(cluster: StreamsCluster) -> StreamsThread:
    return StreamsThread(cluster, "a")


@pytest.fixture
def b(cluster: StreamsCluster) -> StreamsThread:
    return StreamsThread(cluster, "b")


def codes(reply: Any) -> list[StatusCode]:
    return [each.code for each in reply.statuses]


def commit(cluster: StreamsCluster, epoch: int, member: str, partition: int = 0) -> object:
    committer = Committer(generation=epoch, member_id=member, knows_epochs=True)
    offsets = ((TopicPartition("t", partition), CommittedOffset(7)),)
    return cluster.groups.commit(GROUP, committer, offsets).reply


def durable(group: StreamsGroup) -> StreamsGroup:
    """The part of a group that is stored in records."""
    members = {
        name: msgspec.structs.replace(each, deadline_ms=0, rebalance_deadline_ms=None)
        for name, each in group.members.items()
    }
    return msgspec.structs.replace(
        group,
        members=members,
        topics_seen=None,
        configured=None,
        assigned_ms=None,
        delayed_until_ms=None,
        shutdown_by=None,
        endpoint_epoch=0,
        description_due_ms=0,
    )


def test_the_first_member_gets_all_tasks(cluster: StreamsCluster, a: StreamsThread) -> None:
    reply = a.join()
    assert a.has.active == {TaskId("0", index) for index in range(4)}
    assert (reply.epoch, reply.statuses) == (2, ())
    assert cluster.group.state is StreamsGroupState.STABLE
    assert a.beat().assignment is None


def test_a_task_moves_only_after_its_owner_has_revoked_it(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    b.join()
    assert b.has == NOTHING
    assert cluster.group.members["b"].state is StreamsMemberState.UNRELEASED_TASKS
    a.beat()
    assert len(a.has.active) == 2
    b.beat()
    assert b.has == NOTHING, "a has not confirmed yet"
    a.beat()
    b.beat()
    assert len(b.has.active) == 2
    assert not a.has.active & b.has.active
    assert cluster.group.state is StreamsGroupState.STABLE


def test_the_tasks_of_a_leaving_member_are_reassigned(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    b.join()
    settle(a, b)
    kept = a.has.active
    cluster.beat(member_id="b", epoch=-1)
    settle(a)
    assert kept < a.has.active
    assert len(a.has.active) == 4


def test_a_silent_member_is_removed(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    cluster.pass_ms(30_000)
    b.join()
    cluster.pass_ms(20_000)
    assert set(cluster.group.members) == {"b"}
    settle(b)
    assert len(b.has.active) == 4
    with pytest.raises(UnknownMemberId):
        a.beat()


def test_a_member_that_does_not_revoke_its_tasks_is_removed(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    b.join()
    cluster.beat(member_id="a", epoch=a.epoch)
    assert cluster.group.members["a"].state is StreamsMemberState.UNREVOKED_TASKS
    cluster.pass_ms(5001)
    assert set(cluster.group.members) == {"b"}


def test_a_new_coordinator_restores_everything_from_the_log(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join(endpoint=StreamsEndpoint("h", 1), tags=(("zone", "z"),), rack_id="r")
    b.join()
    a.beat()
    before = durable(cluster.group)
    cluster.start()
    assert durable(cluster.group) == before
    settle(a, b)
    assert len(a.has.active) == len(b.has.active) == 2
    cluster.start()
    assert cluster.group.state is StreamsGroupState.STABLE
    assert a.beat().assignment is None, "nothing moves because of a fail-over"


def test_a_deleted_group_stays_deleted_after_a_restart(
    cluster: StreamsCluster, a: StreamsThread
) -> None:
    a.join()
    assert isinstance(cluster.groups.delete_group(GROUP).reply, NonEmptyGroup)
    cluster.beat(member_id="a", epoch=-1)
    assert cluster.group.state is StreamsGroupState.EMPTY
    cluster.groups.delete_group(GROUP)
    cluster.start()
    assert cluster.groups.shards()[0].streams_groups == {}


def test_missing_source_topics_are_reported(cluster: StreamsCluster, a: StreamsThread) -> None:
    cluster.set_topics(other=1)
    reply = a.join()
    assert [(each.code, each.detail) for each in reply.statuses] == [
        (StatusCode.MISSING_SOURCE_TOPICS, "Source topics t are missing.")
    ]
    assert cluster.group.state is StreamsGroupState.NOT_READY
    assert a.has == NOTHING
    cluster.set_topics(t=2)
    assert a.beat().statuses == ()
    assert len(a.has.active) == 2


def test_missing_internal_topics_are_returned_until_they_exist(cluster: StreamsCluster) -> None:
    counting = topology(
        reading("0", "t", repartition_sink_topics=["r"]),
        reading(
            "1", repartition_source_topics=[internal("r")], state_changelog_topics=[internal("c")]
        ),
    )
    a = StreamsThread(cluster, "a", topology=counting)
    reply = a.join()
    assert codes(reply) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(each.name, each.partitions) for each in reply.missing] == [("c", 4), ("r", 4)]
    assert reply.interval_ms < 5000
    cluster.set_topics(t=4, r=4, c=4)
    assert a.beat().statuses == ()
    assert len(a.has.active) == 8
    cluster.set_topics(t=4, r=4, c=3)
    assert codes(a.beat()) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]
    assert a.has == NOTHING


def test_another_topology_is_stale_or_refused(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.topology = topology(epoch=3)
    a.join()
    b.topology = topology(reading("0", "u"), epoch=2)
    assert codes(b.join()) == [StatusCode.STALE_TOPOLOGY]
    with pytest.raises(InvalidRequest, match="Topology updates are not supported yet"):
        StreamsThread(cluster, "c", topology=topology(reading("0", "u"), epoch=3)).join()
    with pytest.raises(InvalidRequest):
        StreamsThread(cluster, "c", topology=topology(epoch=4)).join()


def test_the_first_assignment_waits_for_more_members() -> None:
    config = StreamsConfig(group_streams_initial_rebalance_delay_ms=300)
    cluster = StreamsCluster(config=config)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    reply = a.join()
    assert codes(reply) == [StatusCode.ASSIGNMENT_DELAYED]
    assert (reply.interval_ms, reply.epoch) == (300, 1)
    cluster.pass_ms(200)
    assert b.join().interval_ms == 100
    cluster.pass_ms(100)
    a.beat()
    b.beat()
    assert len(a.has.active) == len(b.has.active) == 2, "nothing had to move"


def test_assignments_respect_their_interval() -> None:
    config = StreamsConfig(group_streams_initial_rebalance_delay_ms=0)
    cluster = StreamsCluster(config=config)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    a.join()
    assert b.join().interval_ms == 1000
    assert cluster.group.state is StreamsGroupState.ASSIGNING
    cluster.pass_ms(1000)
    settle(a, b)


def test_new_internal_topics_are_assigned_without_the_interval() -> None:
    cluster = StreamsCluster(config=StreamsConfig(group_streams_initial_rebalance_delay_ms=0))
    cluster.set_topics(other=1)
    a = StreamsThread(cluster, "a")
    a.join()
    cluster.set_topics(t=1)
    a.beat()
    assert len(a.has.active) == 1


def test_a_shutdown_request_reaches_all_members(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    b.join()
    assert codes(b.beat(shuts_down=True)) == [StatusCode.SHUTDOWN_APPLICATION]
    reply = a.beat()
    assert codes(reply) == [StatusCode.SHUTDOWN_APPLICATION]
    assert reply.statuses[0].detail.startswith("Streams group member b encountered a fatal error")
    for each in ("a", "b"):
        cluster.beat(member_id=each, epoch=-1)
    assert a.join().statuses == ()


def test_endpoints_are_sent_once_per_change(a: StreamsThread) -> None:
    reply = a.join(endpoint=StreamsEndpoint("h", 80))
    assert reply.endpoints is not None
    (at,) = reply.endpoints
    assert (at.endpoint, at.active, at.standby) == (
        StreamsEndpoint("h", 80),
        {"t": [0, 1, 2, 3]},
        {},
    )
    assert a.beat(endpoint_epoch=reply.endpoint_epoch).endpoints is None
    assert a.beat(endpoint_epoch=reply.endpoint_epoch - 1).endpoints is not None


def test_standbys_are_in_other_processes() -> None:
    config = replace(AT_ONCE, group_streams_num_standby_replicas=1)
    cluster = StreamsCluster(config=config)
    cluster.set_topics(t=4, c=4)
    kept = topology(reading("0", "t", state_changelog_topics=[internal("c")]))
    threads = [
        StreamsThread(cluster, f"{p}{n}", process=p, topology=kept) for p in "xy" for n in (1, 2)
    ]
    for each in threads:
        each.join()
    settle(*threads)
    for each in threads:
        assert (len(each.has.active), len(each.has.standby)) == (1, 1)
    for process in "xy":
        mine = [each.has for each in threads if each.process == process]
        assert len({task for has in mine for task in has.tasks}) == 4, "none twice in a process"
    active = {task for each in threads[:2] for task in each.has.active}
    for each in threads[:2]:
        cluster.beat(member_id=each.id, epoch=-1)
    follows = {task: each.id for each in threads[2:] for task in each.has.standby}
    settle(*threads[2:])
    taken = {task: each.id for each in threads[2:] for task in each.has.active if task in active}
    assert taken == follows, "a task goes to where its state is"


def test_epochs_are_checked(cluster: StreamsCluster, a: StreamsThread, b: StreamsThread) -> None:
    a.join()
    before = a.epoch
    with pytest.raises(FencedMemberEpoch, match="greater member epoch"):
        a.beat(epoch=a.epoch + 1)
    b.join()
    a.beat()
    settle(a, b)
    with pytest.raises(FencedMemberEpoch, match="smaller member epoch"):
        a.beat(epoch=before - 1)
    a.beat(epoch=before)  # the response with the new epoch was lost
    with pytest.raises(UnknownMemberId):
        cluster.beat(member_id="nobody", epoch=1)


def test_commits_need_the_epoch_or_a_task_that_stayed(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    a.join()
    before = a.epoch
    b.join()
    settle(a, b)
    (kept, *_), (lost, *_) = sorted(a.has.active), sorted(b.has.active)
    assert a.epoch > before
    assert commit(cluster, a.epoch, "a") == (None,)
    assert commit(cluster, before, "a", kept.partition) == (None,), "epochs moved on meanwhile"
    assert isinstance(commit(cluster, before, "a", lost.partition), StaleMemberEpoch)
    assert isinstance(commit(cluster, a.epoch + 1, "a"), StaleMemberEpoch)
    assert isinstance(commit(cluster, 1, "c"), UnknownMemberId)
    assert isinstance(commit(cluster, -1, ""), UnknownMemberId), "an administrator, while it runs"
    refused = cluster.groups.delete_offsets(GROUP, (TopicPartition("t", 0),)).reply
    assert isinstance(refused, tuple)
    assert isinstance(refused[0], GroupSubscribedToTopic)
    for each in ("a", "b"):
        cluster.beat(member_id=each, epoch=-1)
    assert commit(cluster, -1, "") == (None,)


def test_a_full_group_accepts_no_more_members() -> None:
    cluster = StreamsCluster(config=replace(AT_ONCE, group_streams_max_size=1))
    StreamsThread(cluster, "a").join()
    with pytest.raises(GroupMaxSizeReached):
        StreamsThread(cluster, "b").join()


def test_an_empty_classic_group_becomes_a_streams_group(
    cluster: StreamsCluster, a: StreamsThread
) -> None:
    commit(cluster, -1, "")
    assert GROUP in cluster.groups.shards()[0].classic_groups
    a.join()
    shard = cluster.groups.shards()[0]
    assert GROUP not in shard.classic_groups
    assert shard.offsets[GROUP]
    with pytest.raises(GroupIdNotFound):
        raise_if_error(cluster.groups.describe(GROUP).reply)
    cluster.start()
    assert cluster.groups.shards()[0].classic_groups == {}


def test_an_empty_streams_group_becomes_a_classic_group(
    cluster: StreamsCluster, a: StreamsThread
) -> None:
    joining = GroupJoin(
        new_member_id="b",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(ProtocolMetadata("range", b""),),
    )
    a.join()
    commit(cluster, a.epoch, "a")
    assert isinstance(cluster.groups.join(GROUP, joining).reply, InconsistentGroupProtocol)
    cluster.beat(member_id="a", epoch=-1)
    cluster.groups.join(GROUP, joining)
    shard = cluster.groups.shards()[0]
    assert shard.streams_groups == {}
    assert GROUP in shard.classic_groups
    assert shard.offsets[GROUP], "the application goes on where it stopped"
    cluster.start()
    assert cluster.groups.shards()[0].streams_groups == {}


def raise_if_error(reply: object) -> None:
    if isinstance(reply, KafkaError):
        raise reply


@pytest.mark.parametrize(
    ("fields", "error", "why"),
    [
        ({"member_id": ""}, InvalidHeartbeat, "MemberId can't be empty."),
        ({"rack_id": ""}, InvalidHeartbeat, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, InvalidHeartbeat, "RebalanceTimeoutMs must be provided"),
        ({"active": frozenset({TaskId("0", 1)})}, InvalidHeartbeat, "ActiveTasks must be empty"),
        ({"standby": None}, InvalidHeartbeat, "StandbyTasks must be empty"),
        ({"topology": None}, InvalidHeartbeat, "Topology must be non-null"),
        ({"epoch": -3}, InvalidHeartbeat, "MemberEpoch is -3"),
        ({"epoch": 1}, InvalidHeartbeat, "Topology can only be provided when"),
        ({"epoch": 1, "topology": None, "active": None}, InvalidHeartbeat, "If one task-type"),
        (
            {"instance_id": "i", "version": 0},
            InvalidHeartbeat,
            "Static membership is not yet supported",
        ),
        (
            {"topology": topology(reading("0", source_topic_regex=["t.*"]))},
            InvalidHeartbeat,
            "Regular expressions",
        ),
        (
            {"topology": topology(reading("0", "t", state_changelog_topics=[internal("c", 2)]))},
            InvalidTopology,
            "must have an undefined partition count",
        ),
        (
            {"topology": topology(reading("0", repartition_source_topics=[internal("r", 10**9)]))},
            InvalidTopology,
            "at most 10000",
        ),
        (
            {"topology": topology(reading("0", "t", repartition_sink_topics=["a b", ".."]))},
            InvalidTopology,
            "Topic names a b,.. are not valid topic names.",
        ),
        ({"epoch": 1, "topology": None}, GroupIdNotFound, f"Streams group {GROUP} not found."),
    ],
)
def test_invalid_heartbeats_are_refused(
    a: StreamsThread, fields: dict[str, Any], error: type[KafkaError], why: str
) -> None:
    with pytest.raises(error, match=why):
        a.join(**fields)


@pytest.mark.parametrize(
    "named",
    [
        {"source_topics": ["t", "__consumer_offsets"]},
        {"repartition_sink_topics": ["__consumer_offsets"]},
        {"repartition_source_topics": [internal("__consumer_offsets")]},
        {"state_changelog_topics": [internal("__consumer_offsets")]},
    ],
)
def test_a_topology_cannot_name_topics_of_the_brokers(
    cluster: StreamsCluster, a: StreamsThread, named: dict[str, Any]
) -> None:
    """A missing one would be created with the settings that the client wants."""
    with pytest.raises(InvalidTopology, match="Use of Kafka internal topics __consumer_offsets in"):
        a.join(topology=topology(Subtopology("0", **{"source_topics": ["t"], **named})))
    assert cluster.groups.shards()[0].streams_groups == {}


def test_a_member_that_waits_for_tasks_writes_no_records(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    """It sends heartbeats twice per second until the other member revokes its tasks."""
    a.join()
    b.join()
    written, member = len(cluster.log.batches), cluster.group.members["b"]
    b.beat()
    assert len(cluster.log.batches) == written
    assert cluster.group.members["b"].previous_epoch == member.previous_epoch < member.epoch


def test_a_failover_before_the_first_assignment_keeps_the_epoch() -> None:
    """A member that got epoch 0 back would join again and again."""
    config = replace(AT_ONCE, group_streams_initial_rebalance_delay_ms=100)
    cluster = StreamsCluster(config=config)
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    a.join()
    before = durable(cluster.group)
    cluster.start()
    assert durable(cluster.group) == before
    cluster.beat(member_id="a", epoch=-1)
    assert b.join().epoch > 0


def test_a_new_coordinator_sends_endpoints_again(
    cluster: StreamsCluster, a: StreamsThread, b: StreamsThread
) -> None:
    """Even if its number of changes equals that of the former coordinator."""
    a.join(endpoint=StreamsEndpoint("a", 80))
    known = b.join().endpoint_epoch
    cluster.pass_ms(2000)
    cluster.start()
    for _ in range(known + 1):
        assert b.beat(endpoint_epoch=known).endpoints is not None
        a.beat()


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (TaskId("0", 4), "Task 4 for subtopology 0 is invalid. Number of tasks .*: 4"),
        (TaskId("9", 0), "Subtopology 9 does not exist in the topology"),
    ],
)
@pytest.mark.parametrize("role", ["active", "standby"])
def test_unknown_tasks_are_refused(a: StreamsThread, role: str, task: TaskId, words: str) -> None:
    a.join()
    with pytest.raises(InvalidRequest, match=words):
        a.beat(**{role: frozenset({task})})
