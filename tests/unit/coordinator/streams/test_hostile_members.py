"""Bad data of one member of an application cannot stop the others."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.group.errors import InconsistentGroupProtocol, UnknownMemberId
from penstock.coordinator.group.streams.errors import InvalidTopology
from penstock.coordinator.group.streams.member import StreamsEndpoint, TaskPosition
from penstock.coordinator.group.streams.migration.user_data import read_user_data
from penstock.coordinator.group.streams.records import Topology
from penstock.coordinator.group.streams.task import TaskId
from penstock.coordinator.group.streams.topology import source_topics
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.messages.streams_group_topology_value import (
    CopartitionGroup,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from support.groups.classic_streams_members import ClassicThread, assignment, rolled, told_hosts
from support.groups.streams_members import StreamsCluster, StreamsThread, reading, topology
from support.groups.streams_transcript import user_data

ONE, TWO, THREE = (str(UUID(int=number)) for number in (1, 2, 3))

BAD_ENDPOINTS = [
    "h:65536",
    "h:99999999999",
    "h:" + "9" * 5000,
    "h:\N{ARABIC-INDIC DIGIT THREE}",
    "h" * 256 + ":80",
    "h" * 70_000 + ":80",
    "\N{GRINNING FACE}:80",
    "[]:80",
    "h:-1",
]
BAD_NUMBERS = [
    "abc",
    "",
    "-1",
    "00",
    "2147483648",
    "99999999999",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "9" * 5000,
]


@pytest.mark.parametrize("endpoint", BAD_ENDPOINTS)
def test_a_bad_endpoint_is_ignored(endpoint: str) -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    good = ClassicThread(cluster, ONE, new_id="good", waits_ms=0)
    good.settle()
    bad = ClassicThread(cluster, THREE, endpoint, new_id="bad", waits_ms=0)
    for _ in range(20):
        bad.step()
        good.step()
        new.beat()
    assert cluster.group.members["bad"].endpoint is None
    assert good.has
    assert told_hosts(good.reported) == [("host:80", sorted(good.has))]
    assert told_hosts(bad.reported) == [], "without its own it would join again for ever"


@pytest.mark.parametrize("endpoint", BAD_ENDPOINTS)
def test_a_bad_endpoint_does_not_prevent_a_migration(endpoint: str) -> None:
    cluster = StreamsCluster()
    bad = leading(ClassicThread(cluster, ONE, endpoint))
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    rolled(bad, new)
    assert len(bad.has) == len(new.has.active) == 2


def leading(thread: ClassicThread) -> ClassicThread:
    """The only member of a classic group, with all partitions."""
    thread.join()
    thread.sync(((thread.id, assignment({0, 1, 2, 3})),))
    thread.take()
    return thread


@pytest.mark.parametrize("host", ["h" * 70_000, "\N{GRINNING FACE}", ""])
def test_a_bad_endpoint_of_a_streams_member_is_not_sent_to_classic_members(host: str) -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new", process=TWO)
    new.join(endpoint=StreamsEndpoint(host, 80))
    old = ClassicThread(cluster, ONE, waits_ms=0)
    rolled(old, new)
    assert told_hosts(old.reported) == [("host:80", sorted(old.has))]


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_subtopology_names_that_are_not_numbers_need_the_streams_protocol(number: str) -> None:
    cluster = StreamsCluster()
    named = topology(reading(number, "t"))
    new = StreamsThread(cluster, "new", process=TWO, topology=named)
    new.join()
    with pytest.raises(InconsistentGroupProtocol, match="numbers"):
        ClassicThread(cluster, ONE).join()
    new.beat()
    assert len(new.has.active) == 4


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_an_application_migrates_only_with_numbered_subtopologies(number: str) -> None:
    cluster = StreamsCluster()
    old = leading(ClassicThread(cluster, ONE))
    named = topology(reading(number, "t"))
    with pytest.raises(InvalidTopology, match="numbers"):
        StreamsThread(cluster, "new", process=TWO, topology=named).join()
    old.beat()


def test_partitions_that_do_not_exist_are_not_tasks() -> None:
    cluster = StreamsCluster()
    bad = ClassicThread(cluster, ONE, has={0, 4, 2**31 - 1, -5})
    bad.join()
    bad.sync(((bad.id, assignment({0, 1, 7})),))
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    assert cluster.group.members[bad.id].assigned.active == {TaskId("0", 0), TaskId("0", 1)}


def test_positions_of_tasks_that_do_not_exist_are_forgotten() -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new")
    new.join()
    named = [TaskId("0", 3), TaskId("0", 3), TaskId("0", 4), TaskId("0", -1), TaskId("1", 3)]
    reported = tuple(TaskPosition(task, at) for at, task in enumerate(named))
    new.beat(offsets=reported, end_offsets=reported[::-1])
    member = cluster.group.members["new"]
    assert member.offsets == (TaskPosition(TaskId("0", 3), 1),)
    assert member.end_offsets == (TaskPosition(TaskId("0", 3), 0),)


def test_a_classic_member_cannot_take_the_id_of_a_streams_member() -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    with pytest.raises(UnknownMemberId):
        ClassicThread(cluster, ONE, id="new").join()
    assert not new.beat().statuses
    assert not cluster.group.members["new"].is_classic


@given(st.binary(max_size=60))
def test_any_user_data_is_read_or_refused(data: bytes) -> None:
    with suppress(ProtocolError):
        read_user_data(data)


hosts = st.one_of(st.text(max_size=8), st.sampled_from(["h" * 255, "h" * 70_000, "[::1]"]))
ports = st.one_of(st.text(max_size=8), st.integers(-1, 2**33).map(str))
endpoints = st.one_of(st.text(max_size=8), st.builds("{}:{}".format, hosts, ports))
stated = st.one_of(
    st.binary(max_size=60),
    st.builds(user_data, st.just(THREE), endpoints, st.integers(7, 11)),
    st.builds(lambda tail: user_data(THREE)[:24] + tail, st.binary(max_size=20)),
    st.builds(lambda at: user_data(THREE, "h:80")[:at], st.integers(0, 40)),
)


@given(stated)
def test_no_user_data_of_one_member_stops_the_others(data: bytes) -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new", process=TWO)
    new.join()
    good = ClassicThread(cluster, ONE, new_id="good", waits_ms=0)
    bad = ClassicThread(cluster, THREE, new_id="bad", waits_ms=0, data=data)
    for _ in range(8):
        try:
            bad.step()
        except KafkaError:
            bad.next = bad.join
        good.step()
        new.beat()
    told_hosts(good.reported)
    assert good.has


@given(stated)
def test_an_upgrade_with_any_user_data_succeeds_or_is_refused(data: bytes) -> None:
    cluster = StreamsCluster()
    bad = leading(ClassicThread(cluster, ONE, data=data))
    new = StreamsThread(cluster, "new", process=TWO)
    try:
        new.join()
    except KafkaError:
        bad.beat()  # it stays in its classic group
    else:
        bad.step()
        new.beat()


names = st.one_of(st.sampled_from(["t", "u", "0", "1", ""]), st.text(max_size=6))
infos = st.builds(
    TopicInfo,
    name=names,
    partitions=st.integers(-1, 10_001),
    replication_factor=st.integers(-1, 4),
    topic_configs=st.lists(st.builds(TopicConfig, names, names), max_size=2),
)
indexes = st.lists(st.integers(-1, 2), max_size=2)
subtopologies = st.builds(
    Subtopology,
    subtopology_id=st.one_of(names, st.sampled_from(BAD_NUMBERS)),
    source_topics=st.lists(names, max_size=3),
    source_topic_regex=st.just([]) | st.lists(names, max_size=1),
    state_changelog_topics=st.lists(infos, max_size=2),
    repartition_sink_topics=st.lists(names, max_size=2),
    repartition_source_topics=st.lists(infos, max_size=2),
    copartition_groups=st.lists(
        st.builds(
            CopartitionGroup,
            source_topics=indexes,
            source_topic_regex=indexes,
            repartition_source_topics=indexes,
        ),
        max_size=2,
    ),
)
plain = st.builds(reading, names | st.sampled_from(BAD_NUMBERS), st.just("t"))
topologies = st.one_of(
    st.builds(topology, plain),
    st.builds(Topology, st.integers(-1, 3), st.lists(subtopologies | plain, max_size=3)),
)


@given(topologies)
def test_any_topology_is_accepted_or_refused(given_topology: Topology) -> None:
    cluster = StreamsCluster()
    new = StreamsThread(cluster, "new", process=TWO, topology=given_topology)
    try:
        new.join()
    except KafkaError:
        return
    topics = tuple(source_topics(given_topology))
    old = ClassicThread(cluster, ONE, topics=topics, waits_ms=0)
    for _ in range(6):
        try:
            old.step()
        except KafkaError:
            old.next = old.join
        new.beat()


@given(topologies)
def test_a_migration_to_any_topology_is_accepted_or_refused(given_topology: Topology) -> None:
    cluster = StreamsCluster()
    old = leading(ClassicThread(cluster, ONE))
    new = StreamsThread(cluster, "new", process=TWO, topology=given_topology)
    try:
        new.join()
    except KafkaError:
        old.beat()
    else:
        old.step()
        new.beat()
