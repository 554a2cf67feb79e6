"""Other replicas for a partition (KIP-455).

What needs no copy is done at once: another order, fewer replicas, nothing at all. A target with
brokers that have yet to copy the partition is refused here; nobody would tell when they are done.
"""

from collections.abc import Sequence

import msgspec

from penstock.controller.change import PartitionChange, StoppedReplicas
from penstock.controller.election import Elected, EligibleLeadersNotAvailable, elected
from penstock.controller.office import Office
from penstock.controller.partition_states import write_elected
from penstock.controller.placement import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    chosen_replicas,
)
from penstock.controller.topic_life import assignment_of
from penstock.controller.topic_rules import UnknownTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta, Partition, Topic
from penstock.metadata.records import NO_LEADER, encode
from penstock.metadata.store import Set
from penstock.types import BrokerId, TopicPartition


class NoReassignmentInProgress(KafkaError):
    """There is nothing to cancel."""

    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def reassign(
    office: Office,
    where: TopicPartition,
    target: Sequence[int] | None,
    *,
    factor_may_change: bool = True,
) -> None:
    """Give a partition these replicas; None cancels a move that is under way."""
    topic = office.image.topics.get(where.topic)
    partition = office.image.partition(where)
    if topic is None or partition is None:
        raise UnknownTopic(f"{where} is not known")
    if target is None:
        raise NoReassignmentInProgress(f"{where} is not being moved")
    replicas = chosen_replicas(target, office.image.brokers)
    if not factor_may_change and len(replicas) != len(partition.replicas):
        raise InvalidReplicationFactor(
            f"{where} has {len(partition.replicas)} replicas, {len(replicas)} are asked for"
        )
    if replicas != partition.replicas:
        await _move(office, topic, where, partition, replicas)


async def _move(
    office: Office,
    topic: Topic,
    where: TopicPartition,
    partition: Partition,
    replicas: tuple[BrokerId, ...],
) -> None:
    if new := set(replicas) - set(partition.replicas):
        raise InvalidReplicaAssignment(f"{where} cannot be copied to brokers {sorted(new)} yet")
    outcome = _remaining(office, where, partition, replicas)
    moved = msgspec.structs.replace(partition, replicas=replicas)
    parts = {**topic.partitions, where.partition: moved}
    await office.term.write(
        Set(paths.topic(topic.name), encode(assignment_of(Topic(topic.name, topic.id, parts))))
    )
    await office.announce(ImageDelta(partitions={where: moved}))
    changes: list[PartitionChange] = list((await write_elected(office, {where: outcome})).values())
    left = tuple(each for each in partition.replicas if each not in replicas)
    await office.announce(
        ImageDelta(partitions={each.where: each.state for each in changes}),
        partitions=changes,
        stopped=[StoppedReplicas(where, topic.id, left)] if left else [],
    )


def _remaining(
    office: Office, where: TopicPartition, partition: Partition, replicas: tuple[BrokerId, ...]
) -> Elected:
    """The leader and the ISR without those who leave; somebody in sync must stay."""
    isr = tuple(each for each in partition.isr if each in replicas)
    kept = msgspec.structs.replace(partition, replicas=replicas, isr=isr)
    outcome = elected(kept, office.image.brokers, unclean=False)
    if outcome.leader == NO_LEADER:
        raise EligibleLeadersNotAvailable(f"no replica of {where} that stays is in sync")
    return outcome
