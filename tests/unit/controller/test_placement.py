"""Which brokers get the replicas of new partitions."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.controller.broker_locations import Racks
from penstock.controller.placement import (
    Assignment,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    chosen,
    new_replication_factor,
    placed,
)
from penstock.types import BrokerId


def without_racks(count: int) -> Racks:
    return {BrokerId(broker): None for broker in range(count)}


@pytest.mark.row("A079")
def test_replicas_are_placed_around_the_ring_as_in_kafkas_documentation() -> None:
    # The table in Kafka's own comment on AdminUtils: 10 partitions, 3 replicas, 5 brokers.
    assert placed(without_racks(5), 10, 3, start=0, shift=0) == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


def test_racks_alternate_as_in_kafkas_documentation() -> None:
    # Two brokers in each of three racks: the ring is 0, 3, 1, 5, 4, 2.
    racks = {0: "rack1", 3: "rack2", 1: "rack3", 5: "rack1", 4: "rack2", 2: "rack3"}
    assignment = placed({BrokerId(b): r for b, r in racks.items()}, 7, 3, start=0, shift=0)
    assert assignment == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


def test_racks_count_only_if_every_broker_has_one() -> None:
    racks: Racks = {BrokerId(0): "a", BrokerId(1): "a", BrokerId(2): None}
    assert placed(racks, 3, 2, start=0, shift=0) == placed(without_racks(3), 3, 2, start=0, shift=0)


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(InvalidReplicationFactor, match="only 2 broker"):
        placed(without_racks(2), 1, 3, start=0, shift=0)


@pytest.mark.parametrize("asked", [0, -2])
def test_a_partition_has_at_least_one_replica(asked: int) -> None:
    with pytest.raises(InvalidReplicationFactor):
        new_replication_factor(asked, 1)


def test_minus_one_requests_the_default() -> None:
    assert new_replication_factor(-1, 3) == 3


@st.composite
def rings(draw: st.DrawFn) -> tuple[Racks, int, int, int, int]:
    brokers = draw(st.sets(st.integers(0, 20), min_size=1, max_size=9))
    rack = st.sampled_from(["a", "b", "c"])
    racks: Racks = {BrokerId(broker): draw(rack) for broker in sorted(brokers)}
    if draw(st.booleans()):
        racks = dict.fromkeys(racks)
    factor = draw(st.integers(1, len(racks)))
    number = st.integers(0, len(racks) - 1)
    return racks, draw(st.integers(1, 30)), factor, draw(number), draw(number)


@pytest.mark.row("A079", "A080")
@given(rings())
def test_no_broker_has_two_replicas_and_racks_are_used_evenly(
    ring: tuple[Racks, int, int, int, int],
) -> None:
    racks, partitions, factor, start, shift = ring
    assignment = placed(racks, partitions, factor, start=start, shift=shift)
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas)) == factor
        if None not in racks.values():
            used = {racks[broker] for broker in replicas}
            assert len(used) == min(factor, len(set(racks.values())))


@pytest.mark.row("A163")
@given(rings())
def test_leaders_are_spread_evenly(ring: tuple[Racks, int, int, int, int]) -> None:
    racks, partitions, factor, start, shift = ring
    led = Counter(
        each[0] for each in placed(racks, partitions, factor, start=start, shift=shift).values()
    )
    counts = [led[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1


@given(rings(), st.integers(1, 30))
def test_partitions_added_later_are_placed_as_if_created_at_once(
    ring: tuple[Racks, int, int, int, int], later: int
) -> None:
    racks, partitions, factor, start, shift = ring
    whole = placed(racks, partitions + later, factor, start=start, shift=shift)
    part = placed(racks, later, factor, start=start, shift=shift, first_partition=partitions)
    assert [replicas[0] for replicas in part.values()] == [
        whole[index][0] for index in range(partitions, partitions + later)
    ]


def test_replicas_of_added_partitions_are_placed_as_by_kafka() -> None:
    """Kafka counts the turns around the ring from the first added partition."""
    five = without_racks(5)
    assert placed(five, 2, 3, start=0, shift=0, first_partition=5) == {5: (0, 2, 3), 6: (1, 3, 4)}
    assert placed(five, 4, 3, start=0, shift=0, first_partition=7) == {
        7: (2, 3, 4),
        8: (3, 4, 0),
        9: (4, 0, 1),
        10: (0, 2, 3),
    }


def test_a_ring_begins_at_its_start_and_two_brokers_take_turns() -> None:
    two = without_racks(2)
    assert placed(two, 4, 2, start=1, shift=0) == {0: (1, 0), 1: (0, 1), 2: (1, 0), 3: (0, 1)}
    assert placed(without_racks(5), 2, 2, start=1, shift=0) == {0: (1, 2), 1: (2, 3)}


def test_a_manual_assignment_is_used_unchanged() -> None:
    expected: Assignment = {0: (BrokerId(2), BrokerId(1)), 1: (BrokerId(0), BrokerId(2))}
    assert chosen([(1, (0, 2)), (0, (2, 1))], {0, 1, 2}) == expected


@pytest.mark.parametrize(
    ("assignments", "reason"),
    [
        ([(0, ())], "empty replica list"),
        ([(0, (0, 0))], "broker 0 more than once"),
        ([(0, (7,))], "broker 7"),
        ([(0, (0,)), (0, (1,))], "multiple manual partition assignments"),
        ([(0, (0,)), (2, (1,))], "consecutive 0-based"),
        ([(1, (0,))], "consecutive 0-based"),
        ([(0, (0,)), (1, (0, 1))], "differ"),
    ],
)
def test_impossible_manual_assignments_are_refused(
    assignments: list[tuple[int, tuple[int, ...]]], reason: str
) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=reason):
        chosen(assignments, {0, 1})


def workers(hosts: int, each: int) -> dict[BrokerId, str]:
    """Ids as workers get them: the first one of a host is configured, the others are generated."""
    return {
        BrokerId(host if not worker else 1000 + host * each + worker): f"host{host}"
        for host in range(hosts)
        for worker in range(each)
    }


@pytest.mark.parametrize("racks", [None, "one for each host", "one for all"])
def test_replicas_are_on_different_hosts(racks: str | None) -> None:
    hosts = workers(3, 2)
    by_broker: Racks = {
        broker: None if racks is None else host if racks == "one for each host" else "a"
        for broker, host in hosts.items()
    }
    assignment = placed(by_broker, 24, 3, start=4, shift=2, hosts=hosts)
    assert all(len({hosts[each] for each in replicas}) == 3 for replicas in assignment.values())
    leaders = Counter(replicas[0] for replicas in assignment.values())
    assert set(leaders.values()) == {4}
    held = Counter(each for replicas in assignment.values() for each in replicas)
    assert max(held.values()) - min(held.values()) <= 2


def test_each_host_is_used_before_one_is_used_twice() -> None:
    hosts = workers(2, 3)
    assignment = placed(dict.fromkeys(hosts), 12, 4, start=0, shift=1, hosts=hosts)
    for replicas in assignment.values():
        assert len(set(replicas)) == 4
        assert set(Counter(hosts[each] for each in replicas).values()) == {2}


def test_racks_take_precedence_over_hosts() -> None:
    hosts = workers(4, 2)
    racks: Racks = {broker: "a" if host < "host2" else "b" for broker, host in hosts.items()}
    for replicas in placed(racks, 16, 4, start=0, shift=0, hosts=hosts).values():
        assert set(Counter(racks[each] for each in replicas).values()) == {2}
        assert len({hosts[each] for each in replicas}) == 4


@pytest.mark.parametrize("names", ["aaaaa", "edcba"])
def test_brokers_with_distinct_hosts_or_one_common_host_are_placed_as_in_kafka(names: str) -> None:
    racks = without_racks(5)
    on = {broker: names[broker] for broker in racks}
    wanted = placed(racks, 10, 3, start=1, shift=2)
    assert placed(racks, 10, 3, start=1, shift=2, hosts=on) == wanted
