"""Elections on request (KIP-460), and the periodic election of preferred leaders."""

from collections.abc import Iterable

from penstock.controller.context import ControllerContext
from penstock.controller.leader_election import (
    Elected,
    EligibleLeadersNotAvailable,
    forced,
    preferred,
)
from penstock.controller.partition_states import write_elected
from penstock.controller.topic_rules import UnknownTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.types import BrokerId, TopicPartition
from penstock.wire.enums import ElectionType


class StaleElection(KafkaError):
    """The partition changed during the election; the client tries again."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


async def elect(
    context: ControllerContext, election_type: ElectionType, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """None for each partition that got a new leader, else why it did not."""
    outcomes: dict[TopicPartition, Elected] = {}
    answers: dict[TopicPartition, KafkaError | None] = {}
    for topic_partition in partitions:
        try:
            outcomes[topic_partition] = _outcome(context, election_type, topic_partition)
        except KafkaError as error:
            answers[topic_partition] = error
        else:
            answers[topic_partition] = None
    changes = await write_elected(context, outcomes)
    for topic_partition in outcomes.keys() - changes.keys():
        answers[topic_partition] = StaleElection(
            f"the state of {topic_partition} has changed during the election"
        )
    if changes:
        delta = ImageDelta(
            partitions={each.topic_partition: each.state for each in changes.values()}
        )
        await context.announce(delta, partitions=changes.values())
    return answers


def _outcome(
    context: ControllerContext, election_type: ElectionType, topic_partition: TopicPartition
) -> Elected:
    partition = context.image.partition(topic_partition)
    if partition is None:
        unknown = (
            f"partition as {topic_partition}"
            if topic_partition.topic in context.image.topics
            else ""
        )
        raise UnknownTopic(f"No such {unknown or f'topic as {topic_partition.topic}'}")
    live = context.live_replicas(topic_partition, partition.replicas)
    unclean = context.unclean_replicas(topic_partition)
    if election_type is ElectionType.PREFERRED:
        return preferred(partition, live, unclean)
    if partition.partition_epoch < 0:
        # Its state cannot be read, or was never written. An election would begin at the first
        # leader epoch again, while brokers may lead and follow in a later one.
        raise EligibleLeadersNotAvailable(f"the state of {topic_partition} is not known")
    with_stopping = context.live_or_shutting_down_replicas(topic_partition, partition.replicas)
    return forced(partition, live, with_stopping, unclean)


async def balance(context: ControllerContext, percentage: int) -> None:
    """Elect the preferred leaders of imbalanced brokers."""
    wanted = imbalanced(context.image, percentage)
    await elect(context, ElectionType.PREFERRED, wanted)


def imbalanced(image: ClusterImage, percentage: int) -> list[TopicPartition]:
    """Partitions not led by their preferred leader, if these are more than `percentage` of the
    partitions that prefer the same broker.
    """
    by_preferred: dict[BrokerId, list[tuple[TopicPartition, bool]]] = {}
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.leader >= 0 and not partition.removing_replicas:
                first = partition.replicas[0]
                topic_partition = TopicPartition(topic.name, index)
                by_preferred.setdefault(first, []).append(
                    (topic_partition, partition.leader != first)
                )
    return [
        topic_partition
        for partitions in by_preferred.values()
        if 100 * sum(elsewhere for _, elsewhere in partitions) > percentage * len(partitions)
        for topic_partition, elsewhere in partitions
        if elsewhere
    ]
