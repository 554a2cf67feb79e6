"""Elections that somebody asks for (KIP-460): the preferred leaders, or any at all."""

from collections.abc import Iterable
from enum import IntEnum

from penstock.controller.election import Elected, forced, preferred
from penstock.controller.office import Office
from penstock.controller.partition_states import write_elected
from penstock.controller.topic_rules import UnknownTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ImageDelta
from penstock.types import BrokerId, TopicPartition


class ElectionType(IntEnum):
    """Which leader is wanted, numbered as ElectLeaders sends it."""

    PREFERRED = 0
    UNCLEAN = 1


class OutrunElection(KafkaError):
    """The partition's ISR changed while its leader was elected: to be asked again."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


async def elect(
    office: Office, kind: ElectionType, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """None for each partition that has a new leader, else why it has not."""
    outcomes: dict[TopicPartition, Elected] = {}
    answers: dict[TopicPartition, KafkaError | None] = {}
    for where in partitions:
        try:
            outcomes[where] = _outcome(office, kind, where)
        except KafkaError as error:
            answers[where] = error
        else:
            answers[where] = None
    changes = await write_elected(office, outcomes)
    for where in outcomes.keys() - changes.keys():
        answers[where] = OutrunElection(f"the state of {where} has changed")
    if changes:
        delta = ImageDelta(partitions={each.where: each.state for each in changes.values()})
        await office.announce(delta, partitions=changes.values())
    return answers


def _outcome(office: Office, kind: ElectionType, where: TopicPartition) -> Elected:
    partition = office.image.partition(where)
    if partition is None:
        unknown = f"partition as {where}" if where.topic in office.image.topics else ""
        raise UnknownTopic(f"No such {unknown or f'topic as {where.topic}'}")
    live = office.live(where, partition.replicas)
    return preferred(partition, live) if kind is ElectionType.PREFERRED else forced(partition, live)


async def balance(office: Office, percentage: int) -> None:
    """Preferred leaders for every broker that leads too few of the partitions meant for it."""
    preferred_by: dict[BrokerId, list[tuple[TopicPartition, bool]]] = {}
    for topic in office.image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.leader >= 0 and not partition.removing_replicas:
                first = partition.replicas[0]
                where = TopicPartition(topic.name, index)
                preferred_by.setdefault(first, []).append((where, partition.leader != first))
    wanted = [
        where
        for places in preferred_by.values()
        if 100 * sum(elsewhere for _, elsewhere in places) > percentage * len(places)
        for where, elsewhere in places
        if elsewhere
    ]
    await elect(office, ElectionType.PREFERRED, wanted)
