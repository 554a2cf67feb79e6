"""Which replicas move when the number of workers changes."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.local.workers.distribution import TooManyReplicas, moves
from penstock.types import TopicPartition


def topic(name: str, *holders: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition(name, index): each for index, each in enumerate(holders)}


def after(holders: Mapping[TopicPartition, tuple[int, ...]], workers: int) -> Counter[int]:
    held = {each: set(of) for each, of in holders.items()}
    for move in moves(holders, workers):
        replicas = held[TopicPartition(move.topic, move.partition)]
        replicas.remove(move.source)
        assert move.target not in replicas
        replicas.add(move.target)
    return Counter(worker for replicas in held.values() for worker in replicas)


def test_a_topic_is_spread_over_new_workers() -> None:
    holders = topic("t", *[(0,)] * 7)
    assert sorted(after(holders, 3).values()) == [2, 2, 3]
    assert len(moves(holders, 3)) == 4


def test_topics_of_one_partition_are_spread_together() -> None:
    holders = {key: (0,) for name in "abcdef" for key in topic(name, (0,))}
    assert after(holders, 3) == {0: 2, 1: 2, 2: 2}


def test_the_remaining_workers_take_the_replicas_of_the_removed_ones() -> None:
    holders = topic("t", (0,), (1,), (2,), (0,), (1,), (2,))
    assert after(holders, 2) == {0: 3, 1: 3}
    assert all(move.source == 2 for move in moves(holders, 2))
    assert after(holders, 1) == {0: 6}


def test_nothing_moves_if_the_number_stays() -> None:
    assert moves(topic("t", (0,), (1,), (2,), (0,)), 3) == []


def test_more_replicas_than_workers_are_refused() -> None:
    holders = topic("t", (0, 1))
    with pytest.raises(TooManyReplicas, match="partition t-0 has 2 replicas"):
        moves(holders, 1)


@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.lists(st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=2), max_size=9), max_size=5),
)
def test_every_replica_has_a_worker_and_none_moves_twice(
    before: int, workers: int, topics: list[list[set[int]]]
) -> None:
    holders = {
        TopicPartition(f"t{number}", index): tuple({worker % before for worker in held})
        for number, partitions in enumerate(topics)
        for index, held in enumerate(partitions)
    }
    if any(len(held) > workers for held in holders.values()):
        return
    try:
        loads = after(holders, workers)
    except TooManyReplicas:
        # Only a worker that has a replica of the same partition was left.
        assert any(len(held) > 1 for held in holders.values())
        return
    assert set(loads) <= set(range(workers))
    seen = Counter((each.topic, each.partition, each.source) for each in moves(holders, workers))
    assert all(count == 1 for count in seen.values())
    if all(len(held) == 1 for held in holders.values()):
        totals = [loads[worker] for worker in range(workers)]
        assert max(totals) - min(totals) <= 1
