"""DescribeCluster, InitProducerId, ElectLeaders, reassignments and log directories."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from penstock.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from support.brokers.wire_link import WireLink


@pytest.fixture
def link(tmp_path: Path) -> Iterator[WireLink]:
    settings = {"broker.id": "0", "log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        new = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        link.ask(CreateTopicsRequest(topics=[new]))
        yield link


def test_the_cluster_is_described(link: WireLink) -> None:
    response = link.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert isinstance(response, DescribeClusterResponse)
    assert len(response.cluster_id) == 22
    assert [each.broker_id for each in response.brokers] == [response.controller_id] == [0]
    assert response.cluster_authorized_operations == 8096


def test_only_broker_endpoints_are_described(link: WireLink) -> None:
    for endpoint, code in (
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        response = link.ask(DescribeClusterRequest(endpoint_type=endpoint))
        assert isinstance(response, DescribeClusterResponse)
        assert (response.error_code, response.brokers) == (code, [])


def init(
    link: WireLink, transactional_id: str | None = None, producer_id: int = -1, epoch: int = -1
) -> InitProducerIdResponse:
    response = link.ask(
        InitProducerIdRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
        )
    )
    assert isinstance(response, InitProducerIdResponse)
    return response


@pytest.mark.row("A109")
def test_every_producer_gets_an_id_of_its_own(link: WireLink) -> None:
    given = [init(link) for _ in range(3)]
    assert [(each.error_code, each.producer_epoch) for each in given] == [(0, 0)] * 3
    assert len({each.producer_id for each in given}) == 3


def test_invalid_producers_get_no_id(link: WireLink) -> None:
    for response, code in (
        (init(link, transactional_id=""), ErrorCode.INVALID_REQUEST),
        (init(link, producer_id=5), ErrorCode.INVALID_REQUEST),
        (init(link, epoch=5), ErrorCode.INVALID_REQUEST),
        (init(link, transactional_id="t"), ErrorCode.NOT_COORDINATOR),
    ):
        assert response.error_code == code
        assert (response.producer_id, response.producer_epoch) == (-1, -1)


def test_one_node_needs_no_election(link: WireLink) -> None:
    asked = [TopicPartitions(topic="t", partitions=[0, 9])]
    response = link.ask(ElectLeadersRequest(topic_partitions=asked))
    assert isinstance(response, ElectLeadersResponse)
    (result,) = response.replica_election_results
    assert [(each.partition_id, each.error_code) for each in result.partition_result] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    everything = link.ask(ElectLeadersRequest(topic_partitions=None))
    assert isinstance(everything, ElectLeadersResponse)
    assert [each.partition_result for each in everything.replica_election_results] == [[]]
    odd = link.ask(ElectLeadersRequest(election_type=7, topic_partitions=asked))
    assert isinstance(odd, ElectLeadersResponse)
    assert odd.error_code == ErrorCode.INVALID_REQUEST


def test_reassignments_on_one_node_are_answered(link: WireLink) -> None:
    def codes(*targets: list[int] | None) -> list[int]:
        parts = [ReassignablePartition(partition_index=0, replicas=each) for each in targets]
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name="t", partitions=parts)]
        )
        response = link.ask(request)
        assert isinstance(response, AlterPartitionReassignmentsResponse)
        return [each.error_code for each in response.responses[0].partitions]

    assert codes([0], None, [7]) == [
        ErrorCode.NONE,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ]
    some = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 9])]
    for asked in (None, some):
        listed = link.ask(ListPartitionReassignmentsRequest(topics=asked))
        assert isinstance(listed, ListPartitionReassignmentsResponse)
        assert (listed.error_code, listed.topics) == (0, [])


@pytest.mark.row("A146")
def test_log_directories_are_described(link: WireLink, tmp_path: Path) -> None:
    response = link.ask(DescribeLogDirsRequest(topics=None))
    assert isinstance(response, DescribeLogDirsResponse)
    assert [each.log_dir for each in response.results] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    found = {
        (topic.name, partition.partition_index)
        for each in response.results
        for topic in each.topics
        for partition in topic.partitions
    }
    assert found == {("t", 0), ("t", 1)}
    assert all(0 < each.usable_bytes < each.total_bytes for each in response.results)
    some = link.ask(
        DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[1, 9])])
    )
    assert isinstance(some, DescribeLogDirsResponse)
    assert sum(len(topic.partitions) for each in some.results for topic in each.topics) == 1


def test_a_log_directory_that_vanished_is_described_as_failed(
    link: WireLink, tmp_path: Path
) -> None:
    (tmp_path / "a").rename(tmp_path / "away")
    response = link.ask(DescribeLogDirsRequest(topics=None))
    (tmp_path / "away").rename(tmp_path / "a")
    assert isinstance(response, DescribeLogDirsResponse)
    assert [each.error_code for each in response.results] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]


def test_replicas_move_between_log_directories(link: WireLink, tmp_path: Path) -> None:
    def where() -> dict[int, str]:
        response = link.ask(DescribeLogDirsRequest(topics=None))
        assert isinstance(response, DescribeLogDirsResponse)
        return {
            partition.partition_index: each.log_dir
            for each in response.results
            for topic in each.topics
            for partition in topic.partitions
            if not partition.is_future_key
        }

    def move(path: str, *indexes: int) -> list[int]:
        topics = [AlterReplicaLogDirTopic(name="t", partitions=list(indexes))]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
        response = link.ask(request)
        assert isinstance(response, AlterReplicaLogDirsResponse)
        return [each.error_code for each in response.results[0].partitions]

    before = where()
    other = f"{tmp_path}/b" if before[0] == f"{tmp_path}/a" else f"{tmp_path}/a"
    assert move(other, 0, 9) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    deadline = time.monotonic() + 10
    while where()[0] != other:
        assert time.monotonic() < deadline
    assert where() == {0: other, 1: before[1]}
    assert move("/elsewhere", 0) == [ErrorCode.LOG_DIR_NOT_FOUND]


def cordoned(link: WireLink) -> dict[str, tuple[bool, int]]:
    """Whether each directory is cordoned, and how many partitions are in it."""
    response = link.ask(DescribeLogDirsRequest(topics=None))
    assert isinstance(response, DescribeLogDirsResponse)
    return {
        Path(each.log_dir).name: (
            each.is_cordoned,
            sum(len(topic.partitions) for topic in each.topics),
        )
        for each in response.results
    }


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("", {"a": (False, 2), "b": (False, 2)}),
        ("{0}/a", {"a": (True, 0), "b": (False, 4)}),
        ("{0}/b", {"a": (False, 4), "b": (True, 0)}),
        ("*", {"a": (True, 0), "b": (True, 0)}),
        ("{0}/b,{0}/a", {"a": (True, 0), "b": (True, 0)}),
    ],
)
def test_a_cordoned_directory_gets_no_new_partitions(
    tmp_path: Path, listed: str, expected: dict[str, tuple[bool, int]]
) -> None:
    settings = {
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "cordoned.log.dirs": listed.format(tmp_path),
    }
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        new = CreatableTopic(name="t", num_partitions=4, replication_factor=1)
        made = link.ask(CreateTopicsRequest(topics=[new]))
        assert isinstance(made, CreateTopicsResponse)
        is_refused = made.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert is_refused is all(is_cordoned for is_cordoned, _ in expected.values())
        assert cordoned(link) == expected
        if is_refused:
            return
        for name, (is_cordoned, partitions) in expected.items():
            if is_cordoned and not partitions:
                topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
                move = AlterReplicaLogDir(path=f"{tmp_path}/{name}", topics=topics)
                moved = link.ask(AlterReplicaLogDirsRequest(dirs=[move]))
                assert isinstance(moved, AlterReplicaLogDirsResponse)
                code = moved.results[0].partitions[0].error_code
                assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("{0}/a,{0}/b", ErrorCode.NONE),
        ("*", ErrorCode.NONE),
        ("", ErrorCode.NONE),
        ("{0}/a,{0}/c", ErrorCode.INVALID_REQUEST),
    ],
)
def test_cordoned_directories_are_checked_when_they_are_altered(
    tmp_path: Path, value: str, code: ErrorCode
) -> None:
    settings = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        change = AlterableConfig(
            name="cordoned.log.dirs", config_operation=0, value=value.format(tmp_path)
        )
        number = str(broker.running.services.broker_id)
        resource = AlterConfigsResource(resource_type=4, resource_name=number, configs=[change])
        altered = link.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        assert isinstance(altered, IncrementalAlterConfigsResponse)
        assert altered.responses[0].error_code == code
        if code:
            reported = altered.responses[0].error_message
            assert reported == (
                f"cordoned.log.dirs: {tmp_path}/c is not among log.dirs, which are "
                f"{tmp_path}/a, {tmp_path}/b"
            )
        new = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        made = link.ask(CreateTopicsRequest(topics=[new]))
        assert isinstance(made, CreateTopicsResponse)
        is_refused = made.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert is_refused is (code == ErrorCode.NONE and value != "")
