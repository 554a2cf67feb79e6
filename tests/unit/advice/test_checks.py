"""What `doctor` finds in a cluster and in a folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.advice.cluster_checks import cluster_findings
from penstock.advice.finding import Finding, Level, Problems, some
from penstock.advice.folder_checks import FolderSnapshot, folder_findings
from penstock.advice.snapshot import ClusterSnapshot, GroupState
from penstock.client.address import Address
from penstock.client.errors import ConnectionFailed
from penstock.client.group_description import GroupDescription, MemberDescription
from penstock.client.hanging import OpenTransaction
from penstock.client.log_dirs import LogDirDescription
from penstock.client.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
from penstock.client.producers import ActiveProducer
from penstock.types import BrokerId, LeaderEpoch, Offset, ProducerId, TopicPartition, Uuid

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
TP = TopicPartition("t", 0)


def partition(
    leader: int = 1, replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3)
) -> PartitionMetadata:
    return PartitionMetadata(
        0,
        BrokerId(leader),
        LeaderEpoch(0),
        tuple(map(BrokerId, replicas)),
        tuple(map(BrokerId, isr)),
        (),
    )


def cluster(*brokers: BrokerId, controller: int = 1) -> ClusterMetadata:
    nodes = {each: BrokerNode(each, Address("h", 1), None) for each in brokers}
    return ClusterMetadata("c", BrokerId(controller), nodes)


def seen(one: PartitionMetadata) -> ClusterSnapshot:
    topics = [TopicMetadata("t", Uuid(bytes(16)), is_internal=False, partitions={0: one})]
    return ClusterSnapshot(cluster(ONE, TWO, THREE), topics, {"t": 2})


def found(snapshot: ClusterSnapshot) -> dict[str, Finding]:
    return {each.check: each for each in cluster_findings(snapshot)}


def group(members: int, lag: int, partitions: int = 2, state: str = "Stable") -> GroupState:
    tps = [TopicPartition("t", index) for index in range(partitions)]
    described = tuple(
        MemberDescription(f"m{n}", None, f"client-{n}", "h", tuple(tps[n : n + 1]))
        for n in range(members)
    )
    return GroupState(
        GroupDescription("g", state, "consumer", "range", described),
        {tps[0]: lag, **dict.fromkeys(tps[1:], 0)},
    )


def test_a_healthy_cluster_has_no_findings() -> None:
    assert found(seen(partition())) == {}


@pytest.mark.parametrize(
    ("one", "check", "level"),
    [
        (partition(leader=-1, isr=()), "offline_partitions", Level.ERROR),
        (partition(isr=(1,)), "under_min_isr", Level.ERROR),
        (partition(isr=(1, 2)), "under_replicated", Level.WARNING),
        (partition(replicas=(1,), isr=(1,)), "one_replica", Level.WARNING),
        (partition(replicas=(1, 2), isr=(1, 2)), "min_isr_equals_replicas", Level.WARNING),
        (partition(leader=2), "preferred_leaders", Level.INFO),
    ],
)
def test_partitions_are_checked(one: PartitionMetadata, check: str, level: Level) -> None:
    finding = found(seen(one))[check]
    assert finding.level is level
    assert "t-0" in finding.what or "t" in finding.what
    assert finding.meaning
    assert finding.advice


@pytest.mark.row("A181")
def test_uneven_leaders_are_reported_with_the_setting() -> None:
    uneven = replace(
        seen(partition(leader=2)), settings={ONE: {"auto.leader.rebalance.enable": "false"}}
    )
    assert "auto.leader.rebalance.enable is off" in found(uneven)["preferred_leaders"].advice


def test_brokers_that_are_down_are_named() -> None:
    late = replace(seen(partition(isr=(1, 2))), cluster=cluster(ONE, TWO))
    assert found(late)["under_replicated"].advice == "start broker 3"
    assert "controller" in found(replace(late, cluster=cluster(ONE, controller=-1)))


def test_directories_and_disks_are_checked() -> None:
    def directory(free: int, error: ConnectionFailed | None = None) -> LogDirDescription:
        return LogDirDescription("/d", error, {}, 100, free)

    healthy = seen(partition())
    full = found(replace(healthy, log_dirs={ONE: [directory(1)]}))["disk"]
    assert (full.level, "99% full" in full.what) == (Level.ERROR, True)
    assert found(replace(healthy, log_dirs={ONE: [directory(10)]}))["disk"].level is Level.WARNING
    assert found(replace(healthy, log_dirs={ONE: [directory(50)]})) == {}
    gone = replace(healthy, log_dirs={ONE: [directory(50, ConnectionFailed("x"))]})
    assert found(gone)["offline_log_dir"].level is Level.ERROR


@pytest.mark.row("A184")
@pytest.mark.parametrize(
    ("members", "reported"),
    [
        (0, "start its consumers"),
        (1, "it has 1 member for 2 partitions: start up to 1 more, or more threads"),
        (2, "raise max.poll.records and fetch.max.bytes"),
    ],
)
def test_a_backlog_is_reported_with_advice(members: int, reported: str) -> None:
    backlog = found(replace(seen(partition()), groups=[group(members, 5000)]))["backlog"]
    assert backlog.what == "group g has not read 5000 records, in t-0"
    assert reported in backlog.advice


def test_a_client_with_very_many_partitions_is_warned_of_its_memory() -> None:
    assert "fetch_memory" not in found(replace(seen(partition()), groups=[group(1, 0, 1000)]))
    tps = tuple(TopicPartition("t", index) for index in range(1024))
    member = MemberDescription("m", None, "client-9", "h", tps)
    state = GroupState(GroupDescription("g", "Stable", "consumer", "range", (member,)), {})
    many = found(replace(seen(partition()), groups=[state]))["fetch_memory"]
    assert many.what == "client client-9 of group g reads 1024 partitions"
    assert "1024 MiB" in many.meaning


def test_a_problem_keeps_the_time_it_was_first_seen() -> None:
    problems = Problems()
    one = Finding(Level.ERROR, "disk", "90 % full", "m", "a", subject="1 /d")
    other = replace(one, subject="2 /d")
    dated = replace(one, check="backlog", since_ms=50)
    assert [each.since_ms for each in problems.seen([one], 100)] == [100]
    worse = replace(one, what="95 % full")
    assert [each.since_ms for each in problems.seen([worse, other, dated], 200)] == [100, 200, 50]
    assert problems.seen([], 300) == []
    assert [each.since_ms for each in problems.seen([one], 400)] == [400]


def test_a_short_lag_is_not_reported_and_idle_members_are() -> None:
    assert found(replace(seen(partition()), groups=[group(2, 999)])) == {}
    idle = found(replace(seen(partition()), groups=[group(3, 0)]))["idle_members"]
    assert "client-2" in idle.what


def test_members_of_a_group_that_does_not_read_are_not_idle() -> None:
    """A schema registry elects its leader by the group protocol, and has no partitions."""
    state = group(3, 0)
    elected = replace(state, group=replace(state.group, protocol_type="sr"))
    assert "idle_members" not in found(replace(seen(partition()), groups=[elected]))


def test_hanging_transactions_moves_unclean_elections_and_refused_requests_are_reported() -> None:
    hanging = OpenTransaction(TP, ActiveProducer(ProducerId(7), 0, 0, 0, 0, Offset(5)))
    snapshot = replace(
        seen(partition()),
        hanging=[hanging],
        moving=[TP],
        settings={ONE: {"unclean.leader.election.enable": "true"}},
        failed_requests=["topic x: TOPIC_AUTHORIZATION_FAILED"],
    )
    findings = found(snapshot)
    assert "`penstock txn abort t 0 --start-offset 5`" in findings["hanging_transaction"].advice
    assert findings["reassignments"].level is Level.INFO
    assert findings["unclean_leader_election"].level is Level.WARNING
    assert "TOPIC_AUTHORIZATION_FAILED" in findings["failed_requests"].what
    assert cluster_findings(snapshot)[0].level is Level.ERROR


def test_a_folder_is_checked() -> None:
    healthy = FolderSnapshot(Path("d"), True, True, 50, 100)
    assert folder_findings(healthy) == []
    assert {
        each.check for each in folder_findings(FolderSnapshot(Path("d"), False, False, 1, 100))
    } == {
        "no_logs",
        "disk",
        "not_running",
    }
    hurt = replace(healthy, damage=("a", "b", "c"), errors_logged=("[x] ERROR y",))
    assert [each.check for each in folder_findings(hurt)] == ["damage", "errors_logged"]


def test_a_long_list_of_names_is_cut() -> None:
    assert some(range(7)) == "0, 1, 2, 3, 4 and 2 more"


def test_logs_outside_the_folder_are_reported_as_unchecked() -> None:
    elsewhere = FolderSnapshot(Path("d"), True, False, 50, 100, has_metadata=True)
    (found,) = folder_findings(elsewhere)
    assert (found.check, found.level) == ("logs_elsewhere", Level.WARNING)
