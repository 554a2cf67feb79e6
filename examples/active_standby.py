"""An assignor of one's own: one member reads a topic as a whole, the others stand by.

The broker imports it at its start:

    PYTHONPATH=examples penstock serve \\
        --set group.consumer.assignors=uniform,range,active_standby:active_standby

and consumers ask for it by name: `group.protocol=consumer`, `group.remote.assignor=active_standby`.
"""

from collections.abc import Mapping

from penstock.sdk.assignor import (
    Assignment,
    GroupAssignment,
    Subscriber,
    TopicIdPartition,
    Uuid,
    in_order,
)


def active_standby(
    subscribers: Mapping[str, Subscriber], partitions: Mapping[Uuid, int]
) -> GroupAssignment:
    """Whoever has a topic keeps it; else it goes to the member that has fewest topics."""
    shares: dict[str, Assignment] = dict.fromkeys(subscribers, frozenset())
    for topic, count in partitions.items():
        readers = [each for each in in_order(subscribers) if topic in subscribers[each].topics]
        active = next((each for each in readers if has(subscribers[each], topic)), None)
        active = active or min(readers, key=lambda each: len(shares[each]))
        shares[active] |= {TopicIdPartition(topic, index) for index in range(count)}
    return shares


def has(subscriber: Subscriber, topic: Uuid) -> bool:
    return any(each.topic_id == topic for each in subscriber.held)
