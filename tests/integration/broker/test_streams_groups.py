"""Streams groups over the protocol: topics are created, tasks assigned, groups shown (KIP-1071)."""

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec import to_builtins

from penstock.broker.startup import file_limit
from penstock.broker.startup.file_limit import TooManyPartitions
from penstock.cli.main import main
from penstock.config.delay_route import ROUTE_SETTINGS
from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from penstock.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from penstock.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
}
COUNTING = Topology(
    0,
    [
        Subtopology("0", ["lines"], repartition_sink_topics=["app-words-repartition"]),
        Subtopology(
            "1",
            repartition_source_topics=[
                TopicInfo("app-words-repartition", topic_configs=[KeyValue("retention.ms", "-1")])
            ],
            state_changelog_topics=[
                TopicInfo(
                    "app-counts-changelog", topic_configs=[KeyValue("cleanup.policy", "compact")]
                )
            ],
        ),
    ],
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("lines", 3)])["lines"].result(30)
        yield running


@pytest.fixture
def link(broker: EmbeddedBroker) -> Iterator[WireLink]:
    with WireLink(broker.bootstrap) as connected:
        connected.ask(FindCoordinatorRequest(coordinator_keys=["app"]))
        yield connected


def beat(link: WireLink, **fields: Any) -> StreamsGroupHeartbeatResponse:
    given = {"group_id": "app", "member_id": "a", **fields}
    response = link.ask(StreamsGroupHeartbeatRequest(**given))
    assert isinstance(response, StreamsGroupHeartbeatResponse)
    return response


def join(link: WireLink, **fields: Any) -> StreamsGroupHeartbeatResponse:
    given = {
        "rebalance_timeout_ms": 5000,
        "topology": COUNTING,
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "p",
        **fields,
    }
    return beat(link, **given)


def test_a_member_gets_its_tasks_with_its_first_heartbeat(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    reply = join(link, user_endpoint=Endpoint("host", 80))
    assert (reply.error_code, reply.error_message, reply.status) == (0, None, [])
    tasks = {each.subtopology_id: each.partitions for each in reply.active_tasks or ()}
    assert tasks == {"0": [0, 1, 2], "1": [0, 1, 2]}
    assert reply.partitions_by_user_endpoint is not None
    (at,) = reply.partitions_by_user_endpoint
    assert {each.topic for each in at.active_partitions} == {"lines", "app-words-repartition"}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=10).topics
    for name in ("app-words-repartition", "app-counts-changelog"):
        assert len(topics[name].partitions) == 3

    listed = link.ask(ListGroupsRequest(types_filter=["streams"]))
    assert isinstance(listed, ListGroupsResponse)
    (group,) = [each for each in listed.groups if each.group_id == "app"]
    assert (group.group_state, group.group_type) == ("Stable", "streams")
    described = link.ask(StreamsGroupDescribeRequest(["app", "none"]))
    assert isinstance(described, StreamsGroupDescribeResponse)
    found, none = described.groups
    assert none.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert found.topology is not None
    assert [each.subtopology_id for each in found.topology.subtopologies or ()] == ["0", "1"]
    assert found.members[0].assignment == found.members[0].target_assignment

    for command, wanted in (
        (["list"], ["app", "streams"]),
        (["describe", "app"], ["streams", "app-words-repartition"]),
    ):
        shown = CliRunner().invoke(main, ["group", *command, "-b", broker.bootstrap])
        assert all(each in shown.output for each in wanted), shown.output

    reset = ["group", "reset", "app", "--to", "end", "-t", "lines", "--execute"]
    refused = CliRunner().invoke(main, [*reset, "-b", broker.bootstrap])
    assert "NON_EMPTY_GROUP (it is Stable: stop its consumers first)" in refused.stderr
    assert beat(link, member_epoch=-1).member_epoch == -1
    done = CliRunner().invoke(main, [*reset, "-b", broker.bootstrap])
    assert done.exit_code == 0, done.output
    assert done.stdout.count("lines") == 3
    deleted = link.ask(DeleteGroupsRequest(["app"]))
    assert isinstance(deleted, DeleteGroupsResponse)
    assert deleted.results[0].error_code == 0


def test_a_member_describes_its_topology_on_request(link: WireLink) -> None:
    assert join(link, group_id="reported").topology_description_required
    source = TopologyDescriptionNode("KSTREAM-SOURCE-0000000000", 1, ["lines"], successors=["sink"])
    sink = TopologyDescriptionNode("sink", 3, sink_topic="counts")
    store = TopologyDescriptionGlobalStore(source, TopologyDescriptionNode("fill", 2, stores=["s"]))
    parts = [TopologyDescriptionSubtopology("0", [source, sink])]
    reported = TopologyDescription(parts, [store])

    def update(member_id: str, group_id: str = "reported") -> int:
        reply = link.ask(
            StreamsGroupTopologyDescriptionUpdateRequest(group_id, member_id, 0, reported)
        )
        assert isinstance(reply, StreamsGroupTopologyDescriptionUpdateResponse)
        return reply.error_code

    assert description(link) == (1, None)
    assert update("") == update("a", "") == ErrorCode.INVALID_REQUEST
    assert update("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert update("a") == ErrorCode.NONE
    status, found = description(link)
    assert status == 3
    assert found is not None
    assert to_builtins(found) == to_builtins(reported)
    assert description(link, asked=False) == (0, None)


def description(link: WireLink, *, asked: bool = True) -> tuple[int, Message | None]:
    reply = link.ask(StreamsGroupDescribeRequest(["reported"], include_topology_description=asked))
    assert isinstance(reply, StreamsGroupDescribeResponse)
    (group,) = reply.groups
    return group.topology_description_status, group.topology_description


def test_a_static_member_keeps_its_tasks(link: WireLink) -> None:
    first = join(link, group_id="static", instance_id="i")
    assert beat(link, group_id="static", member_epoch=-2, instance_id="i").member_epoch == -2
    back = join(link, group_id="static", member_id="b", instance_id="i")
    assert (back.error_code, back.active_tasks) == (0, first.active_tasks)
    old = join(link, group_id="static", member_id="c", instance_id="i")
    assert old.error_code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_topics_that_cannot_be_created_are_reported(link: WireLink) -> None:
    changelog = TopicInfo("bad-changelog", topic_configs=[KeyValue("retention.ms", "soon")])
    bad = Topology(0, [Subtopology("0", ["lines"], state_changelog_topics=[changelog])])
    reply = join(link, group_id="bad", topology=bad)
    assert reply.status is not None
    (status,) = reply.status
    assert status.status_code == 3
    assert "bad-changelog" in status.status_detail
    assert "retention.ms" in status.status_detail
    assert not reply.active_tasks


@pytest.mark.parametrize(
    ("why", "reported"),
    [
        (TooManyPartitions("raise ulimit -n"), "failed: raise ulimit -n"),
        (TimeoutError(), "is not finished after 3 s"),
    ],
)
def test_topics_beyond_the_brokers_limit_are_not_created(
    link: WireLink, monkeypatch: pytest.MonkeyPatch, why: Exception, reported: str
) -> None:
    """As if a client requested the topics; the reason is always reported."""

    def refuse(*_: object) -> None:
        raise why

    monkeypatch.setattr(file_limit, "check_room", refuse)
    many = Topology(0, [Subtopology("0", repartition_source_topics=[TopicInfo("many", 9000)])])
    reply = join(link, group_id="many", topology=many)
    assert reply.status is not None
    assert reported in reply.status[0].status_detail


@pytest.mark.parametrize("setting", ROUTE_SETTINGS)
def test_internal_topics_route_no_records(
    broker: EmbeddedBroker, link: WireLink, setting: str
) -> None:
    """The delay service would write to the target for whoever may create the internal topic."""
    changelog = TopicInfo("routed-changelog", topic_configs=[KeyValue(setting, "payments")])
    topology = Topology(0, [Subtopology("0", ["lines"], state_changelog_topics=[changelog])])
    reply = join(link, group_id=f"routed-{setting}", topology=topology)
    assert reply.status is not None
    (status,) = reply.status
    assert "have no delays and retries: routed-changelog" in status.status_detail
    assert "routed-changelog" not in broker.running.services.cluster.image.topics


def test_a_user_without_read_rights_cannot_describe_a_topology() -> None:
    settings = {
        **SETTINGS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        reply = link.ask(StreamsGroupTopologyDescriptionUpdateRequest("app", "a"))
        assert isinstance(reply, StreamsGroupTopologyDescriptionUpdateResponse)
        assert reply.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
