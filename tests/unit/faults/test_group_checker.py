"""The group checker detects violations: each history here is bad in exactly one way."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from faults.checker import violations
from faults.history import Assigned, Committed, Group, History, Looked, Polled

FINAL = [Polled(0, offset, f"a{offset}") for offset in (0, 1, 3, 4)] + [Polled(1, 0, "b0")]
"""Offset 2 is a marker, which consumers never see."""


def share(*partitions: int, at_ms: int, generation: int) -> Assigned:
    return Assigned(frozenset(partitions), at_ms, generation)


def good() -> Group:
    """One member reads all, commits some and loses half to another, which reads the uncommitted
    rest again.
    """
    return Group(
        {
            "one": [
                share(0, 1, at_ms=10, generation=1),
                Polled(0, 0, "a0"),
                Polled(0, 1, "a1"),
                Committed(0, 1, asked_ms=20, told_ms=21, generation=1),
                Polled(1, 0, "b0"),
                share(1, at_ms=40, generation=2),
                Polled(1, 0, "b0"),
                Committed(1, 1, asked_ms=50, told_ms=51, generation=2),
            ],
            "two": [
                share(0, at_ms=42, generation=2),
                Polled(0, 1, "a1"),
                Polled(0, 3, "a3"),
                Polled(0, 4, "a4"),
                Committed(0, 5, asked_ms=60, told_ms=61, generation=2),
            ],
        },
        [Looked(15, {}), Looked(30, {0: 1}), Looked(70, {0: 5, 1: 1})],
    )


def kinds(group: Group) -> set[str]:
    history = History(groups={"g": group}, final=FINAL)
    return {each.kind for each in violations(history)}


def two_owners(group: Group) -> None:
    group.members["two"][0] = share(0, 1, at_ms=42, generation=2)


def generation_back(group: Group) -> None:
    group.members["one"][5] = share(1, at_ms=40, generation=1)
    group.members["one"][7] = Committed(1, 1, 50, 51)


def zombie(group: Group) -> None:
    group.members["one"].append(Committed(1, 1, asked_ms=45, told_ms=46, generation=1))


def forgotten(group: Group) -> None:
    group.looked[-1] = Looked(70, {0: 5})


def forgotten_for_a_moment(group: Group) -> None:
    group.looked[1] = Looked(30, {})


def taken_back(group: Group) -> None:
    group.looked.append(Looked(71, {0: 1, 1: 1}))


def taken_back_and_never_told(group: Group) -> None:
    """Only the observer saw the commit succeed."""
    group.looked[1:1] = [Looked(31, {0: 3})]


def started_before(group: Group) -> None:
    group.members["two"].insert(1, Polled(0, 0, "a0"))


def stranger(group: Group) -> None:
    group.members["two"].append(Polled(1, 0, "b0"))
    group.members["one"][7] = Committed(1, 1, asked_ms=50, told_ms=51)


def again(group: Group) -> None:
    group.members["two"].insert(3, Polled(0, 3, "a3"))


def skipped(group: Group) -> None:
    """Skipped by this member only, not by the group: another member read it."""
    group.members["one"].insert(3, Polled(0, 3, "a3"))
    del group.members["two"][2]


def passed_over(group: Group) -> None:
    """Skipped by a member that started too late."""
    del group.members["two"][1:3]


def other_value(group: Group) -> None:
    group.members["one"][1] = Polled(0, 0, "other")


def ghost(group: Group) -> None:
    group.members["two"].append(Polled(0, 9, "ghost"))


BAD: list[tuple[Callable[[Group], None], set[str]]] = [
    (two_owners, {"double-owner"}),
    (generation_back, {"generation-back"}),
    (zombie, {"zombie-commit"}),
    (forgotten, {"commit-back"}),
    (forgotten_for_a_moment, {"commit-back"}),
    (taken_back, {"commit-back"}),
    (taken_back_and_never_told, {"commit-back"}),
    (started_before, {"start-before-commit"}),
    (stranger, {"not-owner"}),
    (again, {"nonmonotonic-poll"}),
    (skipped, {"poll-skip"}),
    (passed_over, {"group-skip"}),
    (other_value, {"inconsistent-offsets"}),
    (ghost, {"vanished"}),
]


def test_a_good_group_breaks_nothing() -> None:
    assert kinds(good()) == set()


@pytest.mark.parametrize(("spoil", "found"), BAD, ids=[each[0].__name__ for each in BAD])
def test_a_bad_group_is_named(spoil: Callable[[Group], None], found: set[str]) -> None:
    group = deepcopy(good())
    spoil(group)
    assert kinds(group) == found


def test_a_member_without_generations_is_checked_by_the_other_rules() -> None:
    group = good()
    group.members["one"][0] = Assigned(frozenset({0, 1}), 10)
    group.members["two"][0] = Assigned(frozenset({0, 1}), 42)
    assert kinds(group) == set()
