"""The classic protocol's assignors, with the Java client's assignments as examples."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.membership.assignor import (
    ASSIGNORS,
    COOPERATIVE_STICKY,
    RANGE,
    ROUND_ROBIN,
    SubscribedMember,
)
from penstock.types import TopicPartition


def partitions(topic: str, *indexes: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in indexes]


BOTH = [SubscribedMember("b", frozenset({"t", "u"})), SubscribedMember("a", frozenset({"t", "u"}))]


@pytest.mark.row("A048")
def test_range_gives_the_first_members_more_of_each_topic() -> None:
    assert RANGE.assign(BOTH, {"t": 3, "u": 3}) == {
        "a": partitions("t", 0, 1) + partitions("u", 0, 1),
        "b": partitions("t", 2) + partitions("u", 2),
    }


@pytest.mark.row("A048")
def test_roundrobin_continues_with_the_next_topic() -> None:
    assert ROUND_ROBIN.assign(BOTH, {"t": 3, "u": 3}) == {
        "a": partitions("t", 0, 2) + partitions("u", 1),
        "b": partitions("t", 1) + partitions("u", 0, 2),
    }


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    members = [
        SubscribedMember("a", frozenset({"t"})),
        SubscribedMember("z", frozenset({"t"}), instance_id="1"),
        SubscribedMember("y", frozenset({"t"}), instance_id="2"),
    ]
    assert RANGE.assign(members, {"t": 3}) == {
        "z": partitions("t", 0),
        "y": partitions("t", 1),
        "a": partitions("t", 2),
    }


def test_a_moving_partition_is_first_revoked() -> None:
    members = [
        SubscribedMember("a", frozenset({"t"}), frozenset(partitions("t", 0, 1, 2, 3)), 1),
        SubscribedMember("b", frozenset({"t"})),
    ]
    first = COOPERATIVE_STICKY.assign(members, {"t": 4})
    assert first == {"a": partitions("t", 0, 1), "b": []}
    members[0] = SubscribedMember("a", frozenset({"t"}), frozenset(first["a"]), 2)
    second = COOPERATIVE_STICKY.assign(members, {"t": 4})
    assert second == {"a": partitions("t", 0, 1), "b": partitions("t", 2, 3)}


def test_the_owner_with_the_newer_generation_keeps_the_partition() -> None:
    members = [
        SubscribedMember("old", frozenset({"t"}), frozenset(partitions("t", 0)), 1),
        SubscribedMember("new", frozenset({"t"}), frozenset(partitions("t", 0)), 2),
    ]
    assert COOPERATIVE_STICKY.assign(members, {"t": 2})["new"] == partitions("t", 0)


TOPICS = st.sampled_from("tuv")
MEMBERS = st.lists(st.frozensets(TOPICS, min_size=1), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    MEMBERS,
    st.dictionaries(TOPICS, st.integers(0, 9)),
    st.sampled_from(sorted(ASSIGNORS)),
    st.data(),
)
def test_each_partition_has_one_subscriber(
    subscriptions: list[frozenset[str]], counts: dict[str, int], name: str, data: st.DataObject
) -> None:
    members = [SubscribedMember(str(index), topics) for index, topics in enumerate(subscriptions)]
    found = ASSIGNORS[name].assign(members, counts)
    assigned = [each for held in found.values() for each in held]
    subscribed = set().union(*subscriptions)
    wanted = [
        TopicPartition(topic, index)
        for topic, count in counts.items()
        if topic in subscribed
        for index in range(count)
    ]
    assert sorted(assigned) == sorted(wanted)
    for member in members:
        assert {each.topic for each in found[member.id]} <= member.topics
    if name == COOPERATIVE_STICKY.name:
        kept = [
            SubscribedMember(each.id, each.topics, frozenset(found[each.id]), 1) for each in members
        ]
        assert COOPERATIVE_STICKY.assign(kept, counts) == {
            each.id: sorted(found[each.id]) for each in members
        }, "what is balanced stays"
        gone = data.draw(st.sampled_from(kept))
        rest = [each for each in kept if each is not gone]
        again = COOPERATIVE_STICKY.assign(rest, counts)
        one_topic = len({each.topics for each in rest}) == 1
        sizes = [len(each) for each in again.values()]
        if one_topic and sizes:
            assert max(sizes) - min(sizes) <= 1
            assert all(set(again[each.id]) >= set(each.owned) for each in rest)
