"""Plans for `penstock cluster rebalance`."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.controller.balance import Load, PlannedMove, balanced, loads
from penstock.controller.placement import InvalidReplicaAssignment, placed
from penstock.types import BrokerId, TopicPartition

B = BrokerId
Replicas = dict[TopicPartition, tuple[BrokerId, ...]]


def topic(name: str, *replicas: Sequence[int]) -> Replicas:
    return {TopicPartition(name, i): tuple(map(B, each)) for i, each in enumerate(replicas)}


def racks(*names: str | None) -> dict[BrokerId, str | None]:
    return {B(number): name for number, name in enumerate(names)}


def done(replicas: Replicas, moves: list[PlannedMove]) -> Replicas:
    return {**replicas, **{each.topic_partition: each.after for each in moves}}


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    replicas = topic("t", [0, 1], [1, 2], [2, 0], [0, 2], [1, 0], [2, 1])
    moves = balanced(replicas, racks(None, None, None, None))
    assert sum(each.copied for each in moves) == 3
    assert all(set(each.after) - set(each.before) <= {3} for each in moves)
    after = loads(done(replicas, moves).values(), range(4))  # type: ignore[arg-type]
    assert [each.replicas for each in after.values()] == [3, 3, 3, 3]
    assert sorted(each.leaders for each in after.values()) == [1, 1, 2, 2]


def test_a_new_broker_gets_partitions_of_every_topic() -> None:
    replicas = topic("a", *[[0]] * 4) | topic("b", *[[0]] * 4) | topic("c", *[[0]] * 2)
    moves = balanced(replicas, racks(None, None))
    assert [each.topic_partition for each in moves] == [
        TopicPartition("a", 0),
        TopicPartition("a", 1),
        TopicPartition("b", 0),
        TopicPartition("b", 1),
        TopicPartition("c", 0),
    ]


def test_a_broker_that_leaves_gives_each_topic_to_both_others() -> None:
    replicas = topic("a", [0], [0]) | topic("b", [0], [0])
    after = done(replicas, balanced(replicas, racks(None, None, None), without=[B(0)]))
    assert after == topic("a", [1], [2]) | topic("b", [1], [2])


def test_an_even_cluster_stays_as_it_is() -> None:
    replicas = topic("t", [0, 1], [1, 2], [2, 0])
    assert balanced(replicas, racks(None, None, None)) == []


def test_reordering_replicas_is_enough_to_spread_leaders() -> None:
    replicas = topic("t", [0, 1, 2], [0, 1, 2], [0, 1, 2])
    moves = balanced(replicas, racks(None, None, None))
    assert [each.copied for each in moves] == [0, 0]
    assert {each[0] for each in done(replicas, moves).values()} == {0, 1, 2}


def test_leadership_moves_through_an_intermediate_broker() -> None:
    replicas = topic("t", [0, 1], [0, 1], [1, 2], [3, 2], [3, 2])
    # Broker 0 has no partition with broker 2; broker 1 takes one of its own there.
    moves = balanced(replicas, racks(None, None, None, None))
    after = loads(done(replicas, moves).values(), range(4))  # type: ignore[arg-type]
    assert max(each.leaders for each in after.values()) == 2
    assert min(each.leaders for each in after.values()) == 1


def test_replicas_stay_in_different_racks() -> None:
    replicas = topic("t", [0, 1], [0, 1], [0, 1], [0, 1])
    moves = balanced(replicas, racks("a", "b", "b"))
    after = done(replicas, moves)
    assert all(0 in each for each in after.values()), "the only broker of rack a"
    assert loads(after.values(), range(3))[2].replicas == 2  # type: ignore[arg-type]


def test_a_broker_to_be_removed_is_emptied() -> None:
    replicas = topic("t", [0, 1], [1, 2], [2, 0])
    moves = balanced(replicas, racks(None, None, None), without=[1])
    assert all(set(each) == {0, 2} for each in done(replicas, moves).values())


def test_a_broker_that_cannot_be_emptied_is_named() -> None:
    with pytest.raises(InvalidReplicaAssignment, match="t-0 has a replica on broker 1"):
        balanced(topic("t", [0, 1]), racks(None, None), without=[1])


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize(
    "named", ["", "aaa", "abc", "aab", "aabb", "abab", "aaabbb", "aabbcc", "abcc"]
)
def test_any_broker_may_leave_and_replicas_stay_spread_over_racks(named: str, factor: int) -> None:
    by_broker = racks(*named) if named else racks(None, None, None, None)
    assigned = placed(by_broker, 12, factor, start=0, shift=1)
    replicas = {TopicPartition("t", index): each for index, each in assigned.items()}
    for leaver in by_broker:
        left = {each: rack for each, rack in by_broker.items() if each != leaver}
        if len(left) < factor:
            with pytest.raises(InvalidReplicaAssignment, match=f"on broker {leaver}, and no"):
                balanced(replicas, by_broker, without=[leaver])
            continue
        after = done(replicas, balanced(replicas, by_broker, without=[leaver]))
        for each in after.values():
            assert leaver not in each
            assert len(set(each)) == factor
            wanted = min(factor, len(set(left.values())))
            assert len({left[broker] for broker in each}) == wanted


def test_a_removed_broker_leaves_a_partition_with_two_replicas_in_its_rack() -> None:
    replicas = topic("t", [0, 4, 5])
    (move,) = balanced(replicas, racks(*"aaabbb"), without=[5])
    assert 5 not in move.after
    assert {each < 3 for each in move.after} == {True, False}


def test_a_rack_whose_brokers_all_leave_is_not_counted() -> None:
    replicas = topic("t", [0, 2], [1, 3], [2, 1])
    after = done(replicas, balanced(replicas, racks(*"aabb"), without=[2, 3]))
    assert all(set(each) == {0, 1} for each in after.values())


@pytest.mark.parametrize("named", ["", "aabb", "aaaa", "abab"])
def test_workers_of_one_host_stay_apart(named: str) -> None:
    by_broker = racks(*(named + named)) if named else racks(*[None] * 8)
    hosts = {B(each): f"host{each // 2}" for each in range(8)}
    assigned = placed(by_broker, 32, 2, start=0, shift=1, hosts=hosts)
    replicas = {TopicPartition("t", index): each for index, each in assigned.items()}
    crowded = {tp: each for tp, each in replicas.items() if 7 not in each and 6 not in each}
    for given_replicas, without in ((replicas, ()), (replicas, (3,)), (crowded, ())):
        moves = balanced(given_replicas, by_broker, without=without, hosts=hosts)
        for each in done(given_replicas, moves).values():
            assert len({hosts[broker] for broker in each}) == 2
    assert balanced(crowded, by_broker, hosts=hosts), "the last host gets its share"


def test_a_broker_that_is_down_keeps_its_replicas() -> None:
    replicas = topic("t", [9, 0], [9, 1], [9, 0], [9, 1])
    moves = balanced(replicas, racks(None, None))
    assert moves == []


def test_brokers_without_replicas_are_counted() -> None:
    assert loads([(B(1), B(0))], [B(0), B(2)]) == {0: Load(1, 0), 1: Load(1, 1), 2: Load(0, 0)}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Replicas, dict[BrokerId, str | None]]:
    count = draw(st.integers(1, 7))
    named = draw(st.booleans())
    topic_partition = {
        B(each): draw(st.sampled_from("abc")) if named else None for each in range(count)
    }
    replicas: Replicas = {}
    for name in draw(st.lists(st.sampled_from("tuvw"), unique=True)):
        factor = draw(st.integers(1, count))
        for index in range(draw(st.integers(1, 8))):
            order = draw(st.permutations(sorted(topic_partition)))
            replicas[TopicPartition(name, index)] = tuple(order[:factor])
    for each in range(count, count + draw(st.integers(0, 3))):
        topic_partition[B(each)] = draw(st.sampled_from("abcd")) if named else None
    return replicas, topic_partition


@given(clusters())
def test_any_plan_is_even_small_and_safe(
    given_cluster: tuple[Replicas, dict[BrokerId, str | None]],
) -> None:
    replicas, topic_partition = given_cluster
    moves = balanced(replicas, topic_partition)
    after = done(replicas, moves)
    for each in moves:
        assert len(set(each.after)) == len(each.before)
        named = {topic_partition[b] for b in each.before}, {topic_partition[b] for b in each.after}
        assert len(named[1]) >= len(named[0]), "fewer racks"
    before = [each.replicas for each in loads(replicas.values(), topic_partition).values()]
    counts = [each.replicas for each in loads(after.values(), topic_partition).values()]
    if None in topic_partition.values():
        assert max(counts) - min(counts) <= 1
        # No plan is smaller: replicas above the larger share must leave, replicas missing from the
        # smaller share must arrive.
        share, rest = divmod(sum(before), len(before))
        above = sum(max(0, each - share - bool(rest)) for each in before)
        lacks = sum(max(0, share - each) for each in before)
        assert sum(each.copied for each in moves) == max(above, lacks)
    assert balanced(after, topic_partition) == [], "a second plan finds nothing to do"


@given(st.integers(3, 8), st.integers(1, 40), st.integers(1, 3))
def test_joining_brokers_get_their_share_of_placed_replicas(
    brokers: int, partitions: int, factor: int
) -> None:
    old = dict.fromkeys(map(B, range(brokers)))
    assigned = placed(old, partitions, factor, start=0, shift=0)
    replicas = {TopicPartition("t", index): each for index, each in assigned.items()}
    grown = dict.fromkeys(map(B, range(brokers + 2)))
    after = loads(done(replicas, balanced(replicas, grown)).values(), grown)
    led = [each.leaders for each in after.values()]
    if factor > 1 and partitions >= 3 * len(grown):
        assert max(led) - min(led) <= 1
