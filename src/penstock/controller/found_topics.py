"""Topics whose logs exist on this broker already, registered in a store that lacks them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.controller import topic_life
from penstock.controller.context import ControllerContext
from penstock.controller.topic_rules import TopicAlreadyExists
from penstock.controller.topics import PlannedTopic
from penstock.errors import KafkaError
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid


class FoundTopic(Struct, frozen=True):
    """A topic whose logs exist already."""

    name: str
    id: Uuid
    last_epochs: Mapping[int, int]
    """The last leader epoch in each partition's log; -1: none."""
    configs: Mapping[str, str] = {}
    replicas: Mapping[int, tuple[BrokerId, ...]] = {}
    """Where the logs of each partition are, the longest first; none: on this broker."""


async def register(
    context: ControllerContext, found: Sequence[FoundTopic]
) -> list[PlannedTopic | KafkaError]:
    """Create the topics where their logs are; each leader begins a new epoch, alone in its ISR."""
    plans = [_planned(each, context.broker) for each in found]
    new = [each for each in plans if each.topic.name not in context.image.topics]
    created = iter(await topic_life.create(context, new, _next_epochs(found)))
    return [
        next(created)
        if each in new
        else TopicAlreadyExists(f"topic {each.topic.name} is registered already")
        for each in plans
    ]


def _planned(found: FoundTopic, broker: BrokerId) -> PlannedTopic:
    partitions = {
        index: PartitionRegistration(found.replicas.get(index) or (broker,))
        for index in found.last_epochs
    }
    return PlannedTopic(Topic(found.name, found.id, partitions), found.configs)


def _next_epochs(found: Sequence[FoundTopic]) -> dict[TopicPartition, LeaderEpoch]:
    return {
        TopicPartition(topic.name, index): LeaderEpoch(epoch + 1)
        for topic in found
        for index, epoch in topic.last_epochs.items()
    }
