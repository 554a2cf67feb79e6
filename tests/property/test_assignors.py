"""For any subscriptions, each partition has one owner, assignments are even, and little moves."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.group.consumer.assignor.assignor import BUILT_IN, Assignor, named
from penstock.coordinator.group.consumer.assignor.by_range import by_range
from penstock.coordinator.group.consumer.assignor.subscriber import GroupAssignment, Subscriber
from penstock.coordinator.group.consumer.assignor.uniform import uniform
from penstock.errors import ConfigError
from penstock.types import TopicIdPartition, Uuid

TOPICS = [Uuid(bytes(15) + bytes([number])) for number in range(1, 5)]
PARTITIONS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
MEMBERS = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=6, unique=True)

BOTH = pytest.mark.parametrize("assignor", BUILT_IN.values(), ids=BUILT_IN)


@st.composite
def subscribers(draw: st.DrawFn) -> dict[str, Subscriber]:
    common = draw(st.none() | st.frozensets(st.sampled_from(TOPICS)))
    wishes = st.frozensets(st.sampled_from(TOPICS)) if common is None else st.just(common)
    topic_partitions = st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, 11))
    held = draw(st.dictionaries(topic_partitions, st.integers(0, 5)))
    return {
        member: Subscriber(
            draw(wishes),
            frozenset(
                topic_partition for topic_partition, owner in held.items() if owner == number
            ),
            draw(st.sampled_from([None, f"static-{number}"])),
        )
        for number, member in enumerate(draw(MEMBERS))
    }


def again(members: Mapping[str, Subscriber], assignments: GroupAssignment) -> dict[str, Subscriber]:
    return {
        name: Subscriber(each.topics, assignments[name], each.instance_id)
        for name, each in members.items()
    }


@BOTH
@given(members=subscribers(), partitions=PARTITIONS)
def test_every_subscribed_partition_has_one_owner_that_subscribes_to_it(
    assignor: Assignor, members: dict[str, Subscriber], partitions: dict[Uuid, int]
) -> None:
    assignments = assignor(members, partitions)
    assert assignments.keys() == members.keys()
    for name, assignment in assignments.items():
        assert {each.topic_id for each in assignment} <= members[name].topics
    owned = Counter(each for assignment in assignments.values() for each in assignment)
    wanted = frozenset[Uuid]().union(*(each.topics for each in members.values()))
    assert owned == Counter(
        TopicIdPartition(topic, index)
        for topic, count in partitions.items()
        if topic in wanted
        for index in range(count)
    )


@pytest.mark.row("A053")
@given(members=subscribers(), partitions=PARTITIONS)
def test_uniform_assignments_differ_by_one_where_subscriptions_allow(
    members: dict[str, Subscriber], partitions: dict[Uuid, int]
) -> None:
    assignments = uniform(members, partitions)
    for assignment in assignments.values():
        for topic_partition in assignment:
            for other, subscriber in members.items():
                if topic_partition.topic_id in subscriber.topics:
                    assert len(assignment) - len(assignments[other]) <= 1


@BOTH
@given(members=subscribers(), partitions=PARTITIONS)
def test_nothing_moves_when_nothing_changed(
    assignor: Assignor, members: dict[str, Subscriber], partitions: dict[Uuid, int]
) -> None:
    assignments = assignor(members, partitions)
    assert assignor(again(members, assignments), partitions) == assignments


@pytest.mark.row("A053")
@given(count=st.integers(0, 30), size=st.integers(1, 6))
def test_uniform_moves_no_more_than_a_new_member_gets(count: int, size: int) -> None:
    topics = frozenset(TOPICS[:1])
    partitions = {TOPICS[0]: count}
    members = {f"m{number}": Subscriber(topics) for number in range(size)}
    before = uniform(members, partitions)
    after = uniform(again(members, before) | {"new": Subscriber(topics)}, partitions)
    moved = sum(len(before[name] - after[name]) for name in members)
    assert moved == len(after["new"]) == count // (size + 1)


@given(count=st.integers(0, 30), size=st.integers(2, 6))
def test_uniform_moves_only_the_partitions_of_a_leaving_member(count: int, size: int) -> None:
    partitions = {TOPICS[0]: count}
    members = {f"m{number}": Subscriber(frozenset(TOPICS[:1])) for number in range(size)}
    before = uniform(members, partitions)
    left = {name: each for name, each in again(members, before).items() if name != "m0"}
    after = uniform(left, partitions)
    assert all(before[name] <= after[name] for name in left)


@given(count=st.integers(0, 20), size=st.integers(1, 6))
def test_ranges_are_contiguous_and_equal_for_topics_of_one_size(count: int, size: int) -> None:
    partitions = dict.fromkeys(TOPICS[:2], count)
    members = {f"m{number}": Subscriber(frozenset(TOPICS[:2])) for number in range(size)}
    seen = []
    for _, assignment in sorted(by_range(members, partitions).items()):
        one, other = (sorted(i for t, i in assignment if t == topic) for topic in TOPICS[:2])
        assert one == other
        seen += one
    assert seen == list(range(count))


@pytest.mark.row("A052")
def test_by_range_the_first_members_get_the_surplus_partitions() -> None:
    members = {name: Subscriber(frozenset(TOPICS[:1])) for name in ("a", "b", "c")}
    assignments = by_range(members, {TOPICS[0]: 8})
    assert {
        name: sorted(index for _, index in assignment) for name, assignment in assignments.items()
    } == {
        "a": [0, 1, 2],
        "b": [3, 4, 5],
        "c": [6, 7],
    }


def test_an_unknown_assignor_stops_the_broker() -> None:
    assert named(["range"]).default == "range"
    for names in (["uniform", "best"], []):
        with pytest.raises(ConfigError, match=r"group\.consumer\.assignors"):
            named(names)
