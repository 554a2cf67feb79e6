"""Decides whether a group kept Kafka's promises to its members. Pure, like `checker`.

All times are from one machine's clock, so "before" is certain if at least a millisecond lies
between.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from faults.history import Assigned, Committed, Group, MemberEvent, Polled, by_partition
from faults.violation import Violation


def group_violations(group: Group, final: Sequence[Polled]) -> list[Violation]:
    """Every promise that the group's history breaks."""
    return [
        *double_owners(group),
        *generations_going_back(group),
        *zombie_commits(group),
        *commits_going_back(group),
        *starts_before_commits(group),
        *shares_out_of_order(group, final),
        *passed_over(group, final),
    ]


def double_owners(group: Group) -> Iterator[Violation]:
    """A partition must have one owner per generation."""
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    for member, assigned in _assignments(group):
        if assigned.generation is not None:
            for partition in assigned.partitions:
                owners[assigned.generation, partition].add(member)
    for (generation, partition), members in owners.items():
        if len(members) > 1:
            what = f"{partition} is owned by {sorted(members)} in generation {generation}"
            yield Violation("double-owner", what)


def generations_going_back(group: Group) -> Iterator[Violation]:
    """A member's next assignment must have a later generation: a new coordinator continues to
    count.
    """
    for member, events in group.members.items():
        known = [
            each.generation
            for each in events
            if isinstance(each, Assigned) and each.generation is not None
        ]
        for before, after in pairwise(known):
            if after <= before:
                yield Violation("generation-back", f"{member}: {before}, then {after}")


def zombie_commits(group: Group) -> Iterator[Violation]:
    """A member of a past generation must not commit any more."""
    for member, commit in _commits(group):
        for other, assigned in _assignments(group):
            if (
                commit.generation is not None
                and assigned.generation is not None
                and assigned.generation > commit.generation
                and assigned.at_ms < commit.asked_ms
            ):
                yield Violation("zombie-commit", f"{member}: {commit}, but {other}: {assigned}")
                break


def commits_going_back(group: Group) -> Iterator[Violation]:
    """A fetch of committed offsets must return everything that was committed before."""
    for before, after in pairwise(group.looked):
        for partition, offset in before.offsets.items():
            if after.offsets.get(partition, -1) < offset:
                yield Violation("commit-back", f"{partition}: {before}, then {after}")
    for _, commit in _commits(group):
        for looked in group.looked:
            if (
                looked.asked_ms > commit.told_ms
                and looked.offsets.get(commit.partition, -1) < commit.offset
            ):
                yield Violation("commit-back", f"{commit}, then {looked}")
                break


def starts_before_commits(group: Group) -> Iterator[Violation]:
    """A member that gets a partition must continue at the offset committed before."""
    commits = [commit for _, commit in _commits(group)]
    for member, assigned, records in _shares(group):
        for partition, polled in by_partition(records).items():
            before = [
                each.offset
                for each in commits
                if each.partition == partition and each.told_ms < assigned.at_ms
            ]
            if before and polled[0].offset < max(before):
                what = f"{member} got {polled[0]} in {assigned}: {max(before)} was committed"
                yield Violation("start-before-commit", what)


def shares_out_of_order(group: Group, final: Sequence[Polled]) -> Iterator[Violation]:
    """While a member owns a partition, it must get every record in order."""
    there = by_partition(final)
    for member, assigned, records in _shares(group):
        for partition, polled in by_partition(records).items():
            if partition not in assigned.partitions:
                yield Violation("not-owner", f"{member} got {polled[0]} in {assigned}")
            for before, after in pairwise(polled):
                if after.offset <= before.offset:
                    yield Violation("nonmonotonic-poll", f"{member}: {before}, then {after}")
            first, last = polled[0].offset, polled[-1].offset
            got = {each.offset for each in polled}
            for each in there.get(partition, ()):
                if first <= each.offset <= last and each.offset not in got:
                    yield Violation("poll-skip", f"{member} did not get {each}")


def passed_over(group: Group, final: Sequence[Polled]) -> Iterator[Violation]:
    """Every record below a committed offset must have been read by some member."""
    got = {
        (each.partition, each.offset)
        for events in group.members.values()
        for each in events
        if isinstance(each, Polled)
    }
    ends: dict[int, int] = {}
    for _, commit in _commits(group):
        ends[commit.partition] = max(commit.offset, ends.get(commit.partition, 0))
    for each in final:
        below = each.offset < ends.get(each.partition, 0)
        if below and (each.partition, each.offset) not in got:
            yield Violation("group-skip", f"nobody got {each}")


def _assignments(group: Group) -> Iterator[tuple[str, Assigned]]:
    for member, events in group.members.items():
        for each in events:
            if isinstance(each, Assigned):
                yield member, each


def _commits(group: Group) -> Iterator[tuple[str, Committed]]:
    for member, events in group.members.items():
        for each in events:
            if isinstance(each, Committed):
                yield member, each


def _shares(group: Group) -> Iterator[tuple[str, Assigned, list[Polled]]]:
    """The records that each member got between one assignment and the next."""
    for member, events in group.members.items():
        for assigned, records in _shares_of(events):
            yield member, assigned, records


def _shares_of(events: Sequence[MemberEvent]) -> Iterator[tuple[Assigned, list[Polled]]]:
    share = Assigned(frozenset(), -1)
    records: list[Polled] = []
    for each in events:
        if isinstance(each, Assigned):
            yield share, records
            share, records = each, []
        elif isinstance(each, Polled):
            records.append(each)
    yield share, records
