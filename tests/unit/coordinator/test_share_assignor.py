"""The simple assignor of share groups."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinator.group.consumer.assignor.subscriber import Subscriber
from penstock.coordinator.group.consumer.member import Assignment
from penstock.coordinator.group.share.assignor import simple
from penstock.types import TopicIdPartition, Uuid

T = Uuid(b"t" * 16)
U = Uuid(b"u" * 16)


def partitions(count: int, topic: Uuid = T) -> list[TopicIdPartition]:
    return [TopicIdPartition(topic, index) for index in range(count)]


def members(count: int, held: dict[str, Assignment] | None = None) -> dict[str, Subscriber]:
    names = [f"m{n}" for n in range(count)]
    return {each: Subscriber(frozenset({T}), (held or {}).get(each, frozenset())) for each in names}


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_shares_are_even_and_stay_even(first: int, second: int, count: int) -> None:
    held: dict[str, Assignment] = {}
    for size in (first, second):
        wanted = partitions(count)
        held = simple(members(size, held), wanted)
        loads = [len(each) for each in held.values()]
        readers = Counter(each for mine in held.values() for each in mine)
        assert set(readers) == set(wanted)
        assert max(loads) - min(loads) <= 1
        assert max(readers.values()) - min(readers.values()) <= 1
        assert sum(loads) == max(size, count)


def test_members_keep_as_many_partitions_as_balance_allows() -> None:
    before = simple(members(2), partitions(6))
    after = simple(members(3, before), partitions(6))
    kept = sum(len(before[each] & after[each]) for each in before)
    assert kept == 4
    assert simple(members(3, after), partitions(6)) == after


def test_each_topic_is_assigned_to_its_subscribers_only() -> None:
    found = simple(
        {"a": Subscriber(frozenset({T})), "b": Subscriber(frozenset({T, U}))},
        [*partitions(2), *partitions(2, U)],
    )
    assert found["a"] == frozenset(partitions(2))
    assert found["b"] == frozenset(partitions(2, U))


def test_partitions_without_state_are_not_assigned() -> None:
    assert simple(members(2), []) == {"m0": frozenset(), "m1": frozenset()}
