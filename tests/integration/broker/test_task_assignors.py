"""A task assignor in Python, which a streams group names in its settings (KIP-1357)."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from penstock.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)
from support.brokers.wire_link import WireLink

GROUP_RESOURCE = 32
MODULE = """
from penstock.sdk.assignor import TaskAssignment

def to_the_last(members, topology):
    return {max(members): TaskAssignment(frozenset(topology.tasks))}
"""


def test_a_group_chooses_an_assignor_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = {
        "offsets.topic.num.partitions": "1",
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.assignment.interval.ms": "0",
        "group.streams.assignors": "sticky,tasks_of_a_test:to_the_last",
    }
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("lines", 3)])["lines"].result(30)
        link.ask(FindCoordinatorRequest(coordinator_keys=["app"]))
        join(link, "a")
        join(link, "b")
        assert described(link) == ("sticky", {"a": 2, "b": 1})
        named = AlterableConfig("streams.assignor.name", 0, "to_the_last")
        altered = link.ask(
            IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, "app", [named])])
        )
        assert isinstance(altered, IncrementalAlterConfigsResponse)
        assert altered.responses[0].error_code == 0, altered
        join(link, "b")
        assert described(link) == ("to_the_last", {"a": 0, "b": 3})


def join(link: WireLink, member_id: str) -> None:
    response = link.ask(
        StreamsGroupHeartbeatRequest(
            group_id="app",
            member_id=member_id,
            rebalance_timeout_ms=5000,
            topology=Topology(0, [Subtopology("0", ["lines"])]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id=member_id,
        )
    )
    assert isinstance(response, StreamsGroupHeartbeatResponse)
    assert response.error_code == 0, response.error_message


def described(link: WireLink) -> tuple[str | None, dict[str, int]]:
    """The assignor, and how many tasks each member is assigned."""
    response = link.ask(StreamsGroupDescribeRequest(["app"]))
    assert isinstance(response, StreamsGroupDescribeResponse)
    (group,) = response.groups
    return group.assignor_name, {
        each.member_id: sum(len(task.partitions) for task in each.target_assignment.active_tasks)
        for each in group.members
    }
