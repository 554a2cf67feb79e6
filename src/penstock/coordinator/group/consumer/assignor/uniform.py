"""The `uniform` assignor: as even as subscriptions allow, and as few partitions move as can be."""

from collections import defaultdict
from collections.abc import Mapping

from penstock.coordinator.group.consumer.assignor.subscriber import Shares, Subscriber, in_order
from penstock.coordinator.group.consumer.member import TopicIdPartition
from penstock.types import Uuid

Taken = dict[str, set[TopicIdPartition]]


def uniform(subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]) -> Shares:
    readers: dict[Uuid, list[str]] = {topic: [] for topic in partitions}
    for member_id in in_order(subscribers):
        for topic in subscribers[member_id].topics.intersection(partitions):
            readers[topic].append(member_id)
    shares, free = _kept(subscribers, partitions, readers)
    wishes = {each.topics.intersection(partitions) for each in subscribers.values()}
    if len(wishes) == 1:
        _level(shares, free, in_order(subscribers))
    else:
        _give(shares, free, readers)
        _even_out(shares, readers)
    return {each: frozenset(share) for each, share in shares.items()}


def _kept(
    subscribers: Mapping[str, Subscriber],
    partitions: Mapping[Uuid, int],
    readers: Mapping[Uuid, list[str]],
) -> tuple[Taken, list[TopicIdPartition]]:
    """What members may keep, and what is nobody's."""
    left = {
        TopicIdPartition(topic, index): None
        for topic, count in partitions.items()
        if readers[topic]
        for index in range(count)
    }
    shares: Taken = {}
    for member_id, subscriber in subscribers.items():
        kept = {p for p in subscriber.held if p in left and p.topic_id in subscriber.topics}
        for each in kept:
            del left[each]
        shares[member_id] = kept
    return shares, list(left)


def _level(shares: Taken, free: list[TopicIdPartition], ordered: list[str]) -> None:
    """All want the same: everybody gets the same number, and some one more."""
    total = len(free) + sum(map(len, shares.values()))
    size, longer = divmod(total, len(shares))
    # Those who have most keep the odd ones: it moves the fewest.
    by_load = sorted(ordered, key=lambda each: -len(shares[each]))
    quota = {each: size + (place < longer) for place, each in enumerate(by_load)}
    for member_id, share in shares.items():
        for each in sorted(share)[quota[member_id] :]:
            share.discard(each)
            free.append(each)
    rest = iter(free)
    for member_id in ordered:
        share = shares[member_id]
        while len(share) < quota[member_id]:
            share.add(next(rest))


def _give(shares: Taken, free: list[TopicIdPartition], readers: Mapping[Uuid, list[str]]) -> None:
    """Each to the reader who has least; the topics with few readers first."""
    for each in sorted(free, key=lambda p: (len(readers[p.topic_id]), p)):
        least = min(readers[each.topic_id], key=lambda member_id: len(shares[member_id]))
        shares[least].add(each)


def _even_out(shares: Taken, readers: Mapping[Uuid, list[str]]) -> None:
    """Move partitions to who has two fewer or less, until no move makes it more even.

    Each move lowers the sum of squares, so this ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(shares, key=lambda each: -len(shares[each])):
            for each in _spread(shares[member_id]):
                least = min(readers[each.topic_id], key=lambda other: len(shares[other]))
                if len(shares[least]) + 1 < len(shares[member_id]):
                    shares[member_id].discard(each)
                    shares[least].add(each)
                    moved = True


def _spread(share: set[TopicIdPartition]) -> list[TopicIdPartition]:
    """The partitions of the topics with most of them first."""
    by_topic: dict[Uuid, list[TopicIdPartition]] = defaultdict(list)
    for each in sorted(share):
        by_topic[each.topic_id].append(each)
    return [each for part in sorted(by_topic.values(), key=len, reverse=True) for each in part]
