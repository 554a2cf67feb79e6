"""Partition reassignment (KIP-455).

A reassignment has three steps. Each is in the store before the next begins, so that another
controller can continue. First the assignment names the target replicas and those to be removed.
Then the new replicas copy the log and join the ISR. At last the removed replicas leave the ISR,
and the assignment becomes the target.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from penstock.controller.context import ControllerContext
from penstock.controller.leader_election import Elected, EligibleLeadersNotAvailable, elected
from penstock.controller.partition_states import write_elected
from penstock.controller.placement import InvalidReplicationFactor, chosen_replicas
from penstock.controller.state_change import StoppedReplicas
from penstock.controller.topic_life import assignment_of
from penstock.controller.topic_rules import UnknownTopic
from penstock.counted import counted
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import StoreError, StoreUnavailable
from penstock.metadata.image import ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.metadata.records import NO_LEADER, encode
from penstock.metadata.store import Set
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)


class NoReassignmentInProgress(KafkaError):
    """No reassignment of this partition is in progress."""

    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class ReplicaTransition(NamedTuple):
    """A partition's replicas before the reassignment (`origin`) and after it (`target`)."""

    origin: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.target if each not in self.origin)

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.origin if each not in self.target)

    def in_progress(self, partition: PartitionRegistration) -> PartitionRegistration:
        """The partition during the reassignment: the target first, then the replicas to remove."""
        return replace(
            partition,
            replicas=(*self.target, *self.removing),
            adding_replicas=self.adding,
            removing_replicas=self.removing,
        )


def current(partition: PartitionRegistration) -> ReplicaTransition:
    """The partition's reassignment; origin and target are equal if none is in progress."""
    adding, removing = partition.adding_replicas, partition.removing_replicas
    return ReplicaTransition(
        origin=tuple(each for each in partition.replicas if each not in adding),
        target=tuple(each for each in partition.replicas if each not in removing),
    )


async def reassign(
    context: ControllerContext,
    topic_partition: TopicPartition,
    target: Sequence[int] | None,
    *,
    factor_may_change: bool = True,
) -> None:
    """Give a partition these replicas; None cancels a reassignment in progress."""
    topic, partition = (
        context.image.topics.get(topic_partition.topic),
        context.image.partition(topic_partition),
    )
    if topic is None:
        raise UnknownTopic(f"Unable to find a topic named {topic_partition.topic}.")
    if partition is None:
        raise UnknownTopic(
            f"Unable to find partition {topic_partition.topic}:{topic_partition.partition}."
        )
    move = current(partition)
    if target is None:
        if move.origin == move.target:
            raise NoReassignmentInProgress(f"{topic_partition} is not being reassigned")
        wanted = move.origin
    else:
        wanted = chosen_replicas(target, context.image.brokers)
        if not factor_may_change and len(wanted) != len(move.origin):
            raise InvalidReplicationFactor(
                f"{topic_partition} has {counted(len(move.origin), 'replica')}, not the "
                f"{len(wanted)} requested"
            )
    if target is None or wanted != move.target:
        await _begin(
            context, topic, topic_partition, partition, ReplicaTransition(move.origin, wanted)
        )


async def _begin(
    context: ControllerContext,
    topic: Topic,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    move: ReplicaTransition,
) -> None:
    moving = move.in_progress(partition)
    # Replicas of an earlier target that are not in this one.
    dropped = tuple(each for each in partition.replicas if each not in moving.replicas)
    outcome = _elected_without(context, topic_partition, moving, removed=dropped)
    await _write_assignment(context, topic, topic_partition, moving)
    await _write_state(context, topic, topic_partition, moving, outcome, dropped)
    await progress(context, [topic_partition])


async def progress(context: ControllerContext, partitions: Iterable[TopicPartition]) -> bool:
    """Complete the reassignments whose new replicas are all in sync; True if there were any.

    A reassignment whose remaining replicas cannot lead yet waits, and does not delay others.
    """
    has_completed = False
    for topic_partition in partitions:
        topic, partition = (
            context.image.topics.get(topic_partition.topic),
            context.image.partition(topic_partition),
        )
        if topic is None or partition is None:
            continue
        move = current(partition)
        is_moving = bool(partition.adding_replicas or partition.removing_replicas)
        if is_moving and set(move.target) <= set(partition.isr):
            try:
                has_completed |= await _complete(context, topic, topic_partition, partition, move)
            except StoreUnavailable:
                raise
            except (EligibleLeadersNotAvailable, StoreError) as error:
                logger.warning("the reassignment of %s waits: %s", topic_partition, error)
    return has_completed


async def resume(context: ControllerContext) -> None:
    """Continue the reassignments that an earlier controller began.

    It may have written the assignment without sending it to the leader. Brokers ignore a leader
    epoch that they know, so each partition gets a new one.
    """
    for topic_partition in in_progress(context.image):
        topic, partition = (
            context.image.topics[topic_partition.topic],
            context.image.partition(topic_partition),
        )
        if partition is None or partition.partition_epoch < 0:
            continue
        try:
            outcome = _elected_without(context, topic_partition, partition, removed=())
        except EligibleLeadersNotAvailable as error:
            logger.info("the reassignment of %s waits: %s", topic_partition, error)
            continue
        await _write_state(context, topic, topic_partition, partition, outcome, ())
    await progress(context, in_progress(context.image))


def in_progress(image: ClusterImage) -> list[TopicPartition]:
    """Partitions that are being reassigned."""
    return [
        TopicPartition(topic.name, index)
        for topic in image.topics.values()
        for index, each in topic.partitions.items()
        if each.adding_replicas or each.removing_replicas
    ]


async def _complete(
    context: ControllerContext,
    topic: Topic,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    move: ReplicaTransition,
) -> bool:
    """Complete a reassignment; False if another writer changed the state: a repair tries again."""
    outcome = _elected_without(context, topic_partition, partition, removed=move.removing)
    completed = replace(partition, replicas=move.target, adding_replicas=(), removing_replicas=())
    if not await _write_state(
        context, topic, topic_partition, completed, outcome, move.removing, delete=False
    ):
        return False
    try:
        await _write_assignment(context, topic, topic_partition, completed)
    except StoreError:
        _assign(context, topic_partition, partition)  # as the store has it
        context.repair_later()
        raise
    state = context.image.partition(topic_partition)
    assert state is not None
    stopped = StoppedReplicas(
        topic_partition, topic.id, move.removing, leader_epoch=state.leader_epoch
    )
    await context.announce(
        ImageDelta(), metadata_only=[topic_partition], stopped=[stopped] if move.removing else []
    )
    return True


def _elected_without(
    context: ControllerContext,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    removed: tuple[BrokerId, ...],
) -> Elected:
    """The leader and the ISR without the removed replicas; at least one in-sync replica remains."""
    replicas = tuple(each for each in partition.replicas if each not in removed)
    isr = tuple(each for each in partition.isr if each in replicas)
    remaining = replace(partition, replicas=replicas, isr=isr)
    live = context.live_replicas(topic_partition, replicas)
    outcome = elected(
        remaining,
        live,
        allow_unclean=False,
        unclean_shutdown=context.unclean_replicas(topic_partition),
    )
    if outcome.leader == NO_LEADER:
        raise EligibleLeadersNotAvailable(f"no remaining replica of {topic_partition} is in sync")
    return outcome


async def _write_assignment(
    context: ControllerContext,
    topic: Topic,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
) -> None:
    partitions = {
        **context.image.topics[topic.name].partitions,
        topic_partition.partition: partition,
    }
    await context.epoch.write(
        Set(paths.topic(topic.name), encode(assignment_of(Topic(topic.name, topic.id, partitions))))
    )
    _assign(context, topic_partition, partition)


def _assign(
    context: ControllerContext, topic_partition: TopicPartition, partition: PartitionRegistration
) -> None:
    """Apply only the assignment to the image; the state is written separately."""
    known = context.image.partition(topic_partition)
    assert known is not None
    assigned = replace(
        known,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
    )
    context.image = context.image.apply(ImageDelta(partitions={topic_partition: assigned}))


async def _write_state(
    context: ControllerContext,
    topic: Topic,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    outcome: Elected,
    stopped: tuple[BrokerId, ...],
    *,
    delete: bool = True,
) -> bool:
    """Write the state in a new leader epoch and send it with the stopped replicas to all brokers;
    False if another writer has changed the state, or the store refuses it.
    """
    known = context.image.partition(topic_partition)
    assert known is not None
    context.image = context.image.apply(
        ImageDelta(
            partitions={topic_partition: replace(partition, partition_epoch=known.partition_epoch)}
        )
    )
    changes = await write_elected(context, {topic_partition: outcome})
    if not changes:
        _assign(context, topic_partition, known)
        # The assignment may have changed: the next repair sends it to the leader, in a new epoch.
        context.changed_elsewhere.add(topic_partition)
        if stopped and delete:
            earlier = context.dropped.get(topic_partition)
            both = {*stopped, *(() if earlier is None else earlier.replicas)}
            context.dropped[topic_partition] = StoppedReplicas(
                topic_partition, topic.id, tuple(sorted(both))
            )
        return False
    await context.announce(
        ImageDelta(partitions={each.topic_partition: each.state for each in changes.values()}),
        partitions=changes.values(),
        stopped=[
            StoppedReplicas(
                topic_partition,
                topic.id,
                stopped,
                delete=delete,
                leader_epoch=partition.leader_epoch,
            )
        ]
        if stopped
        else [],
    )
    return True
