"""What a topology requires of topics: partition counts, internal topics, refusals."""

import time

import pytest

from penstock.coordinator.group.streams.errors import InvalidTopology
from penstock.coordinator.group.streams.topology import StatusCode, configured
from penstock.wire.messages.streams_group_topology_value import CopartitionGroup, Subtopology
from support.groups.consumer_members import topic
from support.groups.streams_members import internal, reading, topology

TOPICS = {name: topic(name, count) for name, count in (("two", 2), ("four", 4), ("too", 2))}


def missing(*subtopologies: Subtopology) -> dict[str, int]:
    return {
        each.name: each.partitions for each in configured(topology(*subtopologies), TOPICS).missing
    }


def status(*subtopologies: Subtopology) -> tuple[StatusCode, str]:
    found = configured(topology(*subtopologies), TOPICS).status
    assert found is not None
    return found.code, found.detail


def test_a_task_for_each_partition_of_the_largest_source() -> None:
    found = configured(topology(reading("0", "two", "four"), reading("1", "two")), TOPICS)
    assert found.status is None
    assert len(found.tasks) == 6


def test_the_partition_count_of_a_repartition_topic_follows_its_sources() -> None:
    """Through another repartition topic too; an explicit count is kept."""
    assert missing(
        reading("0", "four", repartition_sink_topics=["a"]),
        reading(
            "1",
            "two",
            repartition_source_topics=[internal("a")],
            repartition_sink_topics=["b", "c"],
        ),
        reading("2", repartition_source_topics=[internal("b"), internal("c", 7)]),
    ) == {"a": 4, "b": 4, "c": 7}


def test_a_subtopology_may_read_what_it_writes() -> None:
    """Kafka counts the sources that it knows; so does a loop of two, and what they feed."""
    assert missing(
        reading(
            "0", "four", repartition_source_topics=[internal("a")], repartition_sink_topics=["a"]
        ),
        reading("1", repartition_source_topics=[internal("c")], repartition_sink_topics=["b", "d"]),
        reading(
            "2", "two", repartition_source_topics=[internal("b")], repartition_sink_topics=["c"]
        ),
        reading("3", repartition_source_topics=[internal("d")]),
    ) == {"a": 4, "b": 2, "c": 2, "d": 2}


def test_joined_topics_must_have_equally_many_partitions() -> None:
    joined = [CopartitionGroup(source_topics=[0, 1])]
    assert configured(topology(reading("0", "two", "too", copartition_groups=joined)), TOPICS).tasks
    assert status(reading("0", "two", "four", copartition_groups=joined)) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{four=4, two=2}]",
    )


def test_joined_repartition_topics_get_the_count_of_the_other_side() -> None:
    joined = [CopartitionGroup(source_topics=[0], repartition_source_topics=[0])]

    def together(partitions: int) -> list[Subtopology]:
        repartitioned = [internal("r", partitions)]
        return [
            reading("0", "two", repartition_sink_topics=["r"]),
            reading(
                "1", "four", repartition_source_topics=repartitioned, copartition_groups=joined
            ),
        ]

    assert missing(*together(0)) == {"r": 4}
    code, detail = status(*together(3))
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "Number of partitions [3] of repartition topic [r] doesn't match" in detail


def test_two_joined_repartition_topics_get_the_larger_count() -> None:
    joined = [CopartitionGroup(repartition_source_topics=[0, 1])]
    assert missing(
        reading("0", "two", repartition_sink_topics=["a"]),
        reading("1", "four", repartition_sink_topics=["b"]),
        reading(
            "2",
            repartition_source_topics=[internal("a"), internal("b")],
            copartition_groups=joined,
        ),
    ) == {"a": 4, "b": 4}


def test_a_changelog_has_a_partition_per_task_unless_it_is_the_source() -> None:
    logs = [internal("log"), internal("four")]
    assert missing(reading("0", "two", "four", state_changelog_topics=logs)) == {"log": 4}


def test_existing_internal_topics_must_match() -> None:
    code, detail = status(reading("0", "four", state_changelog_topics=[internal("too")]))
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Existing topic too has different number of partitions: expected 4, found 2"


@pytest.mark.parametrize(
    "subtopologies",
    [
        [reading("0", repartition_source_topics=[internal("r")])],
        [reading("0", repartition_source_topics=[internal("r")], repartition_sink_topics=["r"])],
        [reading("0")],
    ],
)
def test_a_topology_whose_counts_cannot_be_computed_is_refused(
    subtopologies: list[Subtopology],
) -> None:
    with pytest.raises(InvalidTopology):
        configured(topology(*subtopologies), TOPICS)


def test_a_long_chain_of_repartition_topics_is_computed_quickly() -> None:
    """A chain of 2,000 once took minutes in which no other request was answered."""
    last = 2000
    chain = [
        reading(
            str(index),
            *(["two"] if not index else []),
            repartition_source_topics=[internal(f"r{index}")] if index else [],
            repartition_sink_topics=[f"r{index + 1}"] if index < last else [],
        )
        for index in range(last + 1)
    ]
    started_s = time.process_time()
    assert missing(*chain) == {f"r{index}": 2 for index in range(1, last + 1)}
    assert time.process_time() - started_s < 10


def test_a_topology_with_too_many_tasks_is_refused() -> None:
    many = [reading(str(index), repartition_source_topics=[internal("r", 9000)]) for index in "012"]
    with pytest.raises(InvalidTopology, match="has 27000 tasks, at most 20000 are allowed"):
        configured(topology(*many), TOPICS)
