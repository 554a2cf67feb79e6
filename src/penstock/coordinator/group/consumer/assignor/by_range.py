"""The `range` assignor: each topic in contiguous ranges, so that equal partitions meet.

Topics with the same subscribers and as many partitions are cut alike: partition 3 of each is with
the same member, which joins need. The first members get the odd partitions of every topic.
"""

from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.subscriber import Shares, Subscriber, in_order
from penstock.coordinator.group.consumer.member import TopicIdPartition
from penstock.types import Uuid


def by_range(subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]) -> Shares:
    shares: dict[str, set[TopicIdPartition]] = {each: set() for each in subscribers}
    ordered = in_order(subscribers)
    for topic, count in partitions.items():
        readers = [each for each in ordered if topic in subscribers[each].topics]
        if not readers:
            continue
        size, longer = divmod(count, len(readers))
        start = 0
        for place, reader in enumerate(readers):
            end = start + size + (place < longer)
            shares[reader].update(TopicIdPartition(topic, each) for each in range(start, end))
            start = end
    return {each: frozenset(share) for each, share in shares.items()}
