"""Converts assignments: the classic protocol names topics, the consumer protocol has their ids."""

from collections.abc import Iterable
from typing import Protocol

from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.consumer.member import Assignment
from penstock.coordinator.group.consumer.records import by_topic
from penstock.types import TopicIdPartition
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


class NamedIndexes(Protocol):
    """A topic's name and partitions in any message."""

    @property
    def topic(self) -> str: ...

    @property
    def partitions(self) -> list[int]: ...


def assignment_by_name(named: Iterable[NamedIndexes], topics: Topics) -> Assignment:
    """The partitions by topic id, without those of deleted topics."""
    return frozenset(
        TopicIdPartition(topics[each.topic].id, index)
        for each in named
        if each.topic in topics
        for index in each.partitions
    )


def owned(subscription: ConsumerProtocolSubscription, topics: Topics) -> Assignment:
    """The partitions that a cooperative member still owns; an eager one has revoked all to join."""
    return assignment_by_name(subscription.owned_partitions, topics)


def names_of(assignment: Assignment, topics: Topics) -> dict[str, list[int]]:
    """The partitions by topic name, without those of deleted topics."""
    names = {topic.id: name for name, topic in topics.items()}
    return {names[topic]: indexes for topic, indexes in by_topic(assignment) if topic in names}
