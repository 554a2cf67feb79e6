"""An assignor of your own: one member reads a whole topic, the others stand by.

The broker imports it when it starts:

    PYTHONPATH=examples penstock serve \\
        --set group.consumer.assignors=uniform,range,active_standby:active_standby

and consumers name it: `group.protocol=consumer`, `group.remote.assignor=active_standby`.
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
    """A member keeps its topics; a free one goes to the member with the fewest partitions."""
    assignments: dict[str, Assignment] = dict.fromkeys(subscribers, frozenset())
    for topic, count in partitions.items():
        readers = [each for each in in_order(subscribers) if topic in subscribers[each].topics]
        active = next((each for each in readers if has(subscribers[each], topic)), None)
        active = active or min(readers, key=lambda each: len(assignments[each]))
        assignments[active] |= {TopicIdPartition(topic, index) for index in range(count)}
    return assignments


def has(subscriber: Subscriber, topic: Uuid) -> bool:
    return any(each.topic_id == topic for each in subscriber.held)
