"""The `range` assignor: contiguous ranges of each topic.

Topics with the same subscribers and partition counts are divided alike: partition 3 of each goes to
the same member, as joins need it. The first members get the surplus partitions of every topic.
"""

from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.subscriber import (
    GroupAssignment,
    Subscriber,
    in_order,
)
from penstock.types import TopicIdPartition, Uuid


def by_range(
    subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
) -> GroupAssignment:
    assignments: dict[str, set[TopicIdPartition]] = {each: set() for each in subscribers}
    ordered = in_order(subscribers)
    for topic, count in partitions.items():
        readers = [each for each in ordered if topic in subscribers[each].topics]
        if not readers:
            continue
        size, surplus = divmod(count, len(readers))
        start = 0
        for rank, reader in enumerate(readers):
            end = start + size + (rank < surplus)
            assignments[reader].update(TopicIdPartition(topic, each) for each in range(start, end))
            start = end
    return {each: frozenset(assignment) for each, assignment in assignments.items()}
