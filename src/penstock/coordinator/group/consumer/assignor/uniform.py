"""The `uniform` assignor: as even as subscriptions allow, moving as few partitions as possible."""

from collections import defaultdict
from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.subscriber import (
    GroupAssignment,
    Subscriber,
    in_order,
)
from penstock.types import TopicIdPartition, Uuid

Assigned = dict[str, set[TopicIdPartition]]


def uniform(
    subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
) -> GroupAssignment:
    readers: dict[Uuid, list[str]] = {topic: [] for topic in partitions}
    for member_id in in_order(subscribers):
        for topic in subscribers[member_id].topics.intersection(partitions):
            readers[topic].append(member_id)
    assignments, free = _retained(subscribers, partitions, readers)
    subscriptions = {each.topics.intersection(partitions) for each in subscribers.values()}
    if len(subscriptions) == 1:
        _level(assignments, free, in_order(subscribers))
    else:
        _assign_free(assignments, free, readers)
        _even_out(assignments, readers)
    return {each: frozenset(assignment) for each, assignment in assignments.items()}


def _retained(
    subscribers: Mapping[str, Subscriber],
    partitions: Mapping[Uuid, int],
    readers: Mapping[Uuid, list[str]],
) -> tuple[Assigned, list[TopicIdPartition]]:
    """The partitions that members may keep, and those without an owner."""
    left = {
        TopicIdPartition(topic, index): None
        for topic, count in partitions.items()
        if readers[topic]
        for index in range(count)
    }
    assignments: Assigned = {}
    for member_id, subscriber in subscribers.items():
        retained = {p for p in subscriber.held if p in left and p.topic_id in subscriber.topics}
        for each in retained:
            del left[each]
        assignments[member_id] = retained
    return assignments, list(left)


def _level(assignments: Assigned, free: list[TopicIdPartition], ordered: list[str]) -> None:
    """Equal subscriptions: every member gets the same number, and some get one more."""
    total = len(free) + sum(map(len, assignments.values()))
    size, surplus = divmod(total, len(assignments))
    # The members with the most get the surplus: this moves the fewest partitions.
    by_load = sorted(ordered, key=lambda each: -len(assignments[each]))
    quota = {each: size + (rank < surplus) for rank, each in enumerate(by_load)}
    for member_id, assignment in assignments.items():
        for each in sorted(assignment)[quota[member_id] :]:
            assignment.discard(each)
            free.append(each)
    rest = iter(free)
    for member_id in ordered:
        assignment = assignments[member_id]
        while len(assignment) < quota[member_id]:
            assignment.add(next(rest))


def _assign_free(
    assignments: Assigned, free: list[TopicIdPartition], readers: Mapping[Uuid, list[str]]
) -> None:
    """Assign each free partition to its least loaded reader; topics with few readers first."""
    for each in sorted(free, key=lambda p: (len(readers[p.topic_id]), p)):
        least = min(readers[each.topic_id], key=lambda member_id: len(assignments[member_id]))
        assignments[least].add(each)


def _even_out(assignments: Assigned, readers: Mapping[Uuid, list[str]]) -> None:
    """Move partitions to readers with at least two fewer, until no move helps.

    Each move lowers the sum of squares, so this ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assignments, key=lambda each: -len(assignments[each])):
            for each in _spread(assignments[member_id]):
                least = min(readers[each.topic_id], key=lambda other: len(assignments[other]))
                if len(assignments[least]) + 1 < len(assignments[member_id]):
                    assignments[member_id].discard(each)
                    assignments[least].add(each)
                    moved = True


def _spread(assignment: set[TopicIdPartition]) -> list[TopicIdPartition]:
    """The partitions, those of the topics with the most partitions first."""
    by_topic: dict[Uuid, list[TopicIdPartition]] = defaultdict(list)
    for each in sorted(assignment):
        by_topic[each.topic_id].append(each)
    return [each for part in sorted(by_topic.values(), key=len, reverse=True) for each in part]
