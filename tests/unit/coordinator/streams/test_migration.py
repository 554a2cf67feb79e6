"""Classic Kafka Streams members in a streams group: rolling from one protocol to the other."""

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.coordinator.group.streams.endpoints import EndpointPartitions
from penstock.coordinator.group.streams.errors import InvalidTopology, RebalancesClassically
from penstock.coordinator.group.streams.member import StreamsEndpoint
from penstock.coordinator.group.streams.migration.user_data import (
    assignment_user_data,
    read_user_data,
)
from penstock.coordinator.group.streams.task import TaskId
from penstock.errors import KafkaError, ProtocolError
from support.groups.classic_streams_members import ClassicThread, assignment, rolled
from support.groups.group_transcript import GROUP
from support.groups.streams_members import StreamsCluster, StreamsThread, reading, settle, topology
from support.groups.streams_transcript import user_data

ONE, TWO = str(UUID(int=1)), str(UUID(int=2))


@pytest.fixture
def cluster() -> StreamsCluster:
    return StreamsCluster()


@pytest.fixture
def old(cluster: StreamsCluster) -> ClassicThread:
    """The only member of a classic group: it leads, and has all four partitions."""
    thread = ClassicThread(cluster, ONE)
    thread.join()
    thread.sync(((thread.id, assignment({0, 1, 2, 3})),))
    thread.take()
    assert thread.reported == b"leader"
    return thread


def test_a_classic_member_shares_its_tasks_with_the_first_streams_member(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    assert not new.has.active, "the old one has not given up anything"
    rolled(old, new)
    assert len(old.has) == len(new.has.active) == 2
    assert old.has.isdisjoint(task.partition for task in new.has.active)
    assert cluster.group.state.value == "Stable"
    assert [each.is_classic for each in cluster.group.members.values()] == [True, False]


def test_a_task_has_one_owner_at_every_step(cluster: StreamsCluster, old: ClassicThread) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    for _ in range(12):
        old.step()
        new.beat()
        assert old.has.isdisjoint(task.partition for task in new.has.active)
    assert len(new.has.active) == 2


def test_commits_of_a_classic_member_need_its_generation(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    assert old.commit() == (None,), "it has not been told anything yet"
    rolled(old, new)
    assert old.commit() == (None,)
    old.generation -= 1
    assert isinstance(old.commit(), IllegalGeneration)


def test_a_restarted_process_replaces_its_classic_members_at_once(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=ONE)
    new.join()
    assert len(new.has.active) == 4
    assert set(cluster.group.members) == {"new"}
    with pytest.raises(UnknownMemberId):
        old.beat()
    assert isinstance(old.commit(), UnknownMemberId)


def test_a_silent_classic_member_times_out(cluster: StreamsCluster, old: ClassicThread) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    cluster.pass_ms(11_000)
    assert old.id not in cluster.group.members
    settle(new)
    assert len(new.has.active) == 4


def test_a_classic_member_that_joins_and_never_revokes_its_tasks_is_removed(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    old.waits_ms = 0
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    for _ in range(0, 60_000, 5000):  # its rebalance timeout is a minute
        old.join()
        old.sync()
        assert len(old.gets) == 2, "it is told to give up the others"
        cluster.pass_ms(5000)
        new.beat()
    assert old.id not in cluster.group.members
    settle(new)
    assert len(new.has.active) == 4
    with pytest.raises(UnknownMemberId):
        old.join()


def test_the_revocation_deadline_restarts_with_other_tasks(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    old.waits_ms = 0
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    old.join()
    old.sync()
    first_ms = cluster.group.members[old.id].rebalance_deadline_ms
    assert first_ms is not None
    cluster.pass_ms(5000)
    new.beat()
    old.take()
    for number in (3, 4):
        StreamsThread(cluster, f"new-{number}", process=str(UUID(int=number))).join()
    old.join()
    member = cluster.group.members[old.id]
    assert member.revoking, "each of four has one task"
    assert member.rebalance_deadline_ms == first_ms + 5000


def test_a_new_coordinator_makes_classic_members_rejoin(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    rolled(old, new)
    had = set(old.has)
    cluster.start()
    assert isinstance(
        cluster.groups.heartbeat(GROUP, old.id, old.generation).reply, RebalanceInProgress
    )
    rolled(old, new)
    assert old.has == had
    assert cluster.group.state.value == "Stable"


def test_without_streams_members_the_group_is_classic_again(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    rolled(old, new)
    assert old.commit() == (None,)
    new.beat(epoch=-1)
    shard = cluster.groups.shards()[0]
    assert GROUP not in shard.streams_groups
    assert shard.classic_groups[GROUP].state is ClassicGroupState.PREPARING_REBALANCE
    assert shard.offsets[GROUP]
    assert old.commit() == (None,), "it goes on meanwhile"
    reply = cluster.groups.heartbeat(GROUP, old.id, old.generation).reply
    assert isinstance(reply, RebalanceInProgress)
    old.join()
    old.sync(((old.id, assignment({0, 1, 2, 3})),))
    old.take()
    assert len(old.has) == 4
    assert set(shard.classic_groups[GROUP].members) == {old.id}


def test_a_coordinator_failover_after_the_downgrade_makes_classic_members_rejoin(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    rolled(old, new)
    new.beat(epoch=-1)
    cluster.start()
    with pytest.raises(IllegalGeneration):
        old.beat()


def test_members_unknown_to_the_new_coordinator_must_join_the_classic_group_again(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    rolled(old, new)
    cluster.start()
    new.beat(epoch=-1)
    assert not cluster.groups.shards()[0].classic_groups[GROUP].members
    with pytest.raises(UnknownMemberId):
        old.beat()


def test_a_removed_member_revokes_its_tasks_before_it_rejoins(
    cluster: StreamsCluster, old: ClassicThread
) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    cluster.pass_ms(11_000)
    settle(new)
    with pytest.raises(UnknownMemberId):
        old.join()
    old.has = set()
    old.join()
    old.sync()
    rolled(old, new)
    assert len(old.has) == len(new.has.active) == 2


def test_a_classic_member_leaves(cluster: StreamsCluster, old: ClassicThread) -> None:
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    leaving = (LeavingMember(old.id), LeavingMember("new"))
    reply = cluster.groups.leave(GROUP, leaving).reply
    assert isinstance(reply, tuple)
    assert reply[0] is None
    assert isinstance(reply[1], UnknownMemberId)
    settle(new)
    assert len(new.has.active) == 4


def test_a_process_can_return_to_the_classic_protocol(cluster: StreamsCluster) -> None:
    a, b = StreamsThread(cluster, "a", process=ONE), StreamsThread(cluster, "b", process=TWO)
    a.join()
    b.join()
    settle(a, b)
    back = ClassicThread(cluster, ONE)
    back.join()
    assert "a" not in cluster.group.members, "its process has ended"
    back.sync()
    rolled(back, b)
    assert len(back.has) == len(b.has.active) == 2


@dataclass
class Application:
    """Processes that restart with either protocol, beside one that always runs."""

    cluster: StreamsCluster = field(default_factory=StreamsCluster)
    running: dict[int, ClassicThread | StreamsThread] = field(default_factory=dict)
    started: int = 0

    def start(self, number: int, protocol: str) -> None:
        """Start a process; its former run has ended."""
        process, self.started = str(UUID(int=number)), self.started + 1
        self.running.pop(number, None)
        name = f"member-{self.started}"
        if protocol == "classic":
            classic = ClassicThread(self.cluster, process, new_id=name, waits_ms=0)
            self.running[number] = classic
            classic.step()
        else:
            thread = StreamsThread(self.cluster, name, process=process)
            self.running[number] = thread
            thread.join()
        self.check()

    def runs(self, number: int, protocol: str) -> bool:
        """Whether the process runs this protocol; restarted with the same one, its old members
        would time out.
        """
        thread = self.running.get(number)
        if thread is None:
            return False
        return isinstance(thread, ClassicThread) == (protocol == "classic")

    def beat(self, number: int) -> None:
        thread = self.running.get(number)
        if isinstance(thread, ClassicThread):
            thread.step()
        elif thread is not None:
            thread.beat()
        self.check()

    def held(self) -> list[int]:
        return [
            partition
            for each in self.running.values()
            for partition in (
                each.has
                if isinstance(each, ClassicThread)
                else [task.partition for task in each.has.active]
            )
        ]

    def check(self) -> None:
        assert len(self.held()) == len(set(self.held())), "a task is with two members"


START = st.tuples(st.integers(2, 4), st.sampled_from(["classic", "streams"]))
BEAT = st.tuples(st.integers(1, 4), st.just("beat"))


@given(st.lists(st.one_of(START, *[BEAT] * 6), min_size=40, max_size=80))
def test_a_task_has_one_owner_for_any_order_of_restarts(steps: list[tuple[int, str]]) -> None:
    application = Application()
    application.start(1, "streams")
    for number, what in steps:
        if what == "beat" or application.runs(number, what):
            application.beat(number)
        else:
            application.start(number, what)
    for _ in range(30):
        for number in list(application.running):
            application.beat(number)
    assert application.cluster.group.state.value == "Stable"
    assert sorted(application.held()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topics": ("u",)}, InvalidTopology),
        ({"instance_id": "i"}, GroupIdNotFound),
        ({"protocol": "range"}, GroupIdNotFound),
    ],
)
def test_groups_of_other_clients_stay_classic(
    cluster: StreamsCluster, fields: dict[str, object], error: type[KafkaError]
) -> None:
    other = ClassicThread(cluster, ONE, **fields)  # type: ignore[arg-type]
    other.join()
    other.sync(((other.id, assignment({0, 1, 2, 3})),))
    with pytest.raises(error):
        StreamsThread(cluster, "new", process=TWO).join()
    other.beat()
    assert GROUP in cluster.groups.shards()[0].classic_groups


def test_a_different_topology_is_refused(cluster: StreamsCluster, old: ClassicThread) -> None:
    more = topology(reading("0", "t", "missing"))
    with pytest.raises(InvalidTopology, match="missing"):
        StreamsThread(cluster, "new", process=TWO, topology=more).join()
    named = topology(reading("first", "t"))
    with pytest.raises(InvalidTopology, match="numbers"):
        StreamsThread(cluster, "new", process=TWO, topology=named).join()
    old.beat()


def test_joining_a_rebalancing_classic_group_is_a_retriable_error(cluster: StreamsCluster) -> None:
    first = ClassicThread(cluster, ONE)
    first.join()
    with pytest.raises(RebalancesClassically):
        StreamsThread(cluster, "new", process=TWO).join()


@pytest.mark.parametrize("fields", [{"topics": ("u",)}, {"instance_id": "i"}, {"protocol": "x"}])
def test_classic_members_with_another_subscription_or_protocol_cannot_join(
    cluster: StreamsCluster, fields: dict[str, object]
) -> None:
    StreamsThread(cluster, "new", process=TWO).join()
    with pytest.raises(InconsistentGroupProtocol):
        ClassicThread(cluster, ONE, **fields).join()  # type: ignore[arg-type]


def test_the_user_data_of_a_member_is_read() -> None:
    found = read_user_data(user_data(ONE, "[::1]:8080"))
    assert found == (11, ONE, StreamsEndpoint("::1", 8080), False)
    assert read_user_data(user_data(ONE)).endpoint is None


@pytest.mark.parametrize("data", [None, b"", b"short", user_data(ONE, version=6)])
def test_user_data_in_another_format_is_refused(data: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        read_user_data(data)


@pytest.mark.parametrize(
    ("version", "task"), [(7, "00000001 00000002"), (11, "00000001 00000002 00000000")]
)
def test_an_assignment_is_encoded_as_in_java(version: int, task: str) -> None:
    hosts = [EndpointPartitions(StreamsEndpoint("h", 80), {"t": [2]}, {})]
    found = assignment_user_data(version, [TaskId("1", 2)], hosts)
    number = f"{version:08x}"
    host = "0001 68 00000050"
    wanted = (
        f"{number} {number} 00000001 {task} 00000000"
        f"00000001 00000000 0001 74"
        f"00000001 {host} 00000001 00000000 00000002"
        f"00000001 {host} 00000000"
        f"00000000 7fffffffffffffff"
    )
    assert found == bytes.fromhex(wanted)
