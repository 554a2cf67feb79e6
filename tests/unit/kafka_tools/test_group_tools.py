"""Decisions and output of the group tools, without a cluster."""

import pytest

from penstock.kafka_tools.group_reset import print_csv
from penstock.kafka_tools.streams_topology import input_topics, internal_topics, tasks
from penstock.types import Offset, TopicPartition
from penstock.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

GROUP = DescribedGroup(
    group_id="g",
    topology=Topology(
        0,
        [
            Subtopology("0", ["lines"], ["g-repartition"]),
            Subtopology(
                "1",
                ["more"],
                state_changelog_topics=[TopicInfo("g-changelog")],
                repartition_source_topics=[TopicInfo("g-repartition")],
            ),
        ],
    ),
)


@pytest.mark.parametrize(("with_group", "line"), [(True, "g,t,0,7\n\n"), (False, "t,0,7\n\n")])
def test_csv_offsets_include_the_group_unless_one_was_named(
    with_group: bool, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_csv({"g": {TopicPartition("t", 0): Offset(7)}}, with_group=with_group)
    assert capsys.readouterr().out == line


def test_a_topology_distinguishes_input_topics_from_internal_ones() -> None:
    assert input_topics(GROUP) == ["lines", "more"]
    assert internal_topics(GROUP) == ["g-changelog", "g-repartition"]
    assert input_topics(DescribedGroup()) == internal_topics(DescribedGroup()) == []


def test_tasks_are_printed_by_kind_and_subtopology() -> None:
    assignment = Assignment([TaskIds("1", [2, 0]), TaskIds("0", [1])], [TaskIds("1", [3])])
    assert tasks(assignment) == "ACTIVE: 0:[1]; 1:[0,2]; STANDBY: 1:[3]; "
    assert tasks(Assignment(warmup_tasks=[TaskIds("0", [0])]), "TARGET-") == (
        "TARGET-WARMUP: 0:[0]; "
    )
