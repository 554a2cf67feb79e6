"""A topology as its application describes it (KIP-1331)."""

from collections.abc import Sequence

import pytest

from penstock.coordinator.group.errors import UnknownMemberId
from penstock.coordinator.group.streams.description import MOST_CHARS
from penstock.coordinator.result import EmptyReply
from penstock.errors import InvalidRequest, KafkaError
from penstock.wire.messages.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from support.groups.group_transcript import GROUP
from support.groups.streams_members import StreamsCluster, StreamsThread, settle


def described(node_type: int = 1) -> TopologyDescription:
    node = TopologyDescriptionNode("source", node_type, ["t"])
    return TopologyDescription([TopologyDescriptionSubtopology("0", [node])])


@pytest.fixture
def cluster() -> StreamsCluster:
    return StreamsCluster()


def put(
    cluster: StreamsCluster, member_id: str = "a", epoch: int = 0, node_type: int = 1
) -> object:
    return cluster.groups.describe_topology(GROUP, member_id, epoch, described(node_type)).reply


def test_one_member_is_asked_until_the_topology_is_described(cluster: StreamsCluster) -> None:
    a, b = StreamsThread(cluster, "a"), StreamsThread(cluster, "b")
    assert not a.join(version=0).describes_topology, "an old client cannot"
    assert a.beat().describes_topology
    assert not b.join().describes_topology
    cluster.pass_ms(30_000)
    assert b.beat().describes_topology, "a has not answered"
    assert put(cluster, "b") == EmptyReply()
    assert cluster.group.description == described()
    settle(a, b)
    cluster.pass_ms(30_000)
    assert not a.beat().describes_topology
    cluster.start()
    assert a.beat().describes_topology, "it is in no record"


@pytest.mark.parametrize(
    ("member_id", "epoch", "node_type", "error"),
    [
        ("nobody", 0, 1, UnknownMemberId),
        ("a", 1, 1, InvalidRequest),
        ("a", 0, 4, InvalidRequest),
    ],
)
def test_an_invalid_description_is_refused(
    cluster: StreamsCluster, member_id: str, epoch: int, node_type: int, error: type[KafkaError]
) -> None:
    assert isinstance(put(cluster), UnknownMemberId), "there is no group"
    StreamsThread(cluster, "a").join()
    assert isinstance(put(cluster, member_id, epoch, node_type), error)
    assert cluster.group.description is None


def nodes(
    count: int, stores: Sequence[str] = (), successors: Sequence[str] = ()
) -> TopologyDescription:
    node = TopologyDescriptionNode("n", 2, stores=list(stores), successors=list(successors))
    return TopologyDescription([TopologyDescriptionSubtopology("0", [node] * count)])


@pytest.mark.parametrize(
    "large",
    [
        nodes(1, stores=["s" * 30_000] * 40),
        nodes(1, successors=[""] * (MOST_CHARS // 10)),
        nodes(MOST_CHARS // 20),
        TopologyDescription([TopologyDescriptionSubtopology()] * (MOST_CHARS // 10)),
        TopologyDescription(
            [],
            [TopologyDescriptionGlobalStore(*nodes(2).subtopologies[0].nodes)] * (MOST_CHARS // 40),
        ),
    ],
    ids=["long names", "many names", "many nodes", "many subtopologies", "many global stores"],
)
def test_a_description_that_is_too_large_is_refused(
    cluster: StreamsCluster, large: TopologyDescription
) -> None:
    StreamsThread(cluster, "a").join()
    refused = cluster.groups.describe_topology(GROUP, "a", 0, large).reply
    assert isinstance(refused, InvalidRequest)
    assert cluster.group.description is None
    assert cluster.groups.describe_topology(GROUP, "a", 0, nodes(20_000)).reply == EmptyReply()
