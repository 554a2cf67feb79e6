"""Shares between the protocols: the classic one has topics by name, the other one by id."""

from collections.abc import Iterable
from typing import Protocol

from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.consumer.member import Share, TopicIdPartition
from penstock.coordinator.group.consumer.records import by_topic
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


class NamedIndexes(Protocol):
    """Partitions of a topic by its name, in whatever message."""

    @property
    def topic(self) -> str: ...

    @property
    def partitions(self) -> list[int]: ...


def share_by_name(named: Iterable[NamedIndexes], topics: Topics) -> Share:
    """Without those of topics that are gone."""
    return frozenset(
        TopicIdPartition(topics[each.topic].id, index)
        for each in named
        if each.topic in topics
        for index in each.partitions
    )


def owned(told: ConsumerProtocolSubscription, topics: Topics) -> Share:
    """What a cooperative member still has; an eager one has given everything up to join."""
    return share_by_name(told.owned_partitions, topics)


def names_of(share: Share, topics: Topics) -> dict[str, list[int]]:
    """Partitions by the names of their topics; those that are gone have none."""
    names = {topic.id: name for name, topic in topics.items()}
    return {names[topic]: indexes for topic, indexes in by_topic(share) if topic in names}
