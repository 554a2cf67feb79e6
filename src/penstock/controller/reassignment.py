"""Other replicas for a partition (KIP-455).

A move has three steps, each in the store before the next begins, so that another controller can go
on: the assignment names the target and those that will leave; the new replicas copy and come into
the ISR; then the leaving ones drop out of it, and the assignment is the target alone.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from penstock.controller.change import StoppedReplicas
from penstock.controller.election import Elected, EligibleLeadersNotAvailable, elected
from penstock.controller.office import Office
from penstock.controller.partition_states import write_elected
from penstock.controller.placement import InvalidReplicationFactor, chosen_replicas
from penstock.controller.topic_life import assignment_of
from penstock.controller.topic_rules import UnknownTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta, Partition, Topic
from penstock.metadata.records import NO_LEADER, encode
from penstock.metadata.refusal import StoreError, StoreUnavailable
from penstock.metadata.store import Set
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)


class NoReassignmentInProgress(KafkaError):
    """There is nothing to cancel."""

    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class Move(NamedTuple):
    """Where a partition's replicas were before the move, and where they are to be."""

    origin: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.target if each not in self.origin)

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.origin if each not in self.target)

    def under_way(self, partition: Partition) -> Partition:
        """The partition while it moves: the target first, then those that will leave."""
        return replace(
            partition,
            replicas=(*self.target, *self.removing),
            adding_replicas=self.adding,
            removing_replicas=self.removing,
        )


def current(partition: Partition) -> Move:
    """The move that a partition is in; one that is in none moves from and to where it is."""
    adding, removing = partition.adding_replicas, partition.removing_replicas
    return Move(
        origin=tuple(each for each in partition.replicas if each not in adding),
        target=tuple(each for each in partition.replicas if each not in removing),
    )


async def reassign(
    office: Office,
    where: TopicPartition,
    target: Sequence[int] | None,
    *,
    factor_may_change: bool = True,
) -> None:
    """Give a partition these replicas; None cancels a move that is under way."""
    topic, partition = office.image.topics.get(where.topic), office.image.partition(where)
    if topic is None:
        raise UnknownTopic(f"Unable to find a topic named {where.topic}.")
    if partition is None:
        raise UnknownTopic(f"Unable to find partition {where.topic}:{where.partition}.")
    move = current(partition)
    if target is None:
        if move.origin == move.target:
            raise NoReassignmentInProgress(f"{where} is not being moved")
        wanted = move.origin
    else:
        wanted = chosen_replicas(target, office.image.brokers)
        if not factor_may_change and len(wanted) != len(move.origin):
            raise InvalidReplicationFactor(
                f"{where} has {len(move.origin)} replicas, {len(wanted)} are asked for"
            )
    if target is None or wanted != move.target:
        await _begin(office, topic, where, partition, Move(move.origin, wanted))


async def _begin(
    office: Office, topic: Topic, where: TopicPartition, partition: Partition, move: Move
) -> None:
    moving = move.under_way(partition)
    # Those that an earlier target had called and this one does not want.
    dropped = tuple(each for each in partition.replicas if each not in moving.replicas)
    outcome = _led(office, where, moving, without=dropped)
    await _write_assignment(office, topic, where, moving)
    await _write_state(office, topic, where, moving, outcome, dropped)
    await progress(office, [where])


async def progress(office: Office, partitions: Iterable[TopicPartition]) -> bool:
    """End the moves whose new replicas are all in sync; says whether there were any.

    One that cannot end now, since nobody who stays is there to lead, waits and stops no other.
    """
    ended = False
    for where in partitions:
        topic, partition = office.image.topics.get(where.topic), office.image.partition(where)
        if topic is None or partition is None:
            continue
        move = current(partition)
        moves = bool(partition.adding_replicas or partition.removing_replicas)
        if moves and set(move.target) <= set(partition.isr):
            try:
                ended |= await _end(office, topic, where, partition, move)
            except StoreUnavailable:
                raise
            except (EligibleLeadersNotAvailable, StoreError) as error:
                logger.warning("the move of %s waits: %s", where, error)
    return ended


async def resume(office: Office) -> None:
    """Go on with the moves that an earlier controller has begun.

    It may have written only who replicates, and not told the leader: brokers hear of other
    replicas only in a new leader epoch.
    """
    for where in moving(office):
        topic, partition = office.image.topics[where.topic], office.image.partition(where)
        if partition is None or partition.partition_epoch < 0:
            continue
        try:
            outcome = _led(office, where, partition, without=())
        except EligibleLeadersNotAvailable as error:
            logger.info("the move of %s waits: %s", where, error)
            continue
        await _write_state(office, topic, where, partition, outcome, ())
    await progress(office, moving(office))


def moving(office: Office) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in office.image.topics.values()
        for index, each in topic.partitions.items()
        if each.adding_replicas or each.removing_replicas
    ]


async def _end(
    office: Office, topic: Topic, where: TopicPartition, partition: Partition, move: Move
) -> bool:
    """False if somebody else has written the state: it is looked at again after a repair."""
    outcome = _led(office, where, partition, without=move.removing)
    settled = replace(partition, replicas=move.target, adding_replicas=(), removing_replicas=())
    if not await _write_state(office, topic, where, settled, outcome, move.removing, delete=False):
        return False
    await _write_assignment(office, topic, where, settled)
    state = office.image.partition(where)
    assert state is not None
    stopped = StoppedReplicas(where, topic.id, move.removing, leader_epoch=state.leader_epoch)
    await office.announce(ImageDelta(), told=[where], stopped=[stopped] if move.removing else [])
    return True


def _led(
    office: Office, where: TopicPartition, partition: Partition, without: tuple[BrokerId, ...]
) -> Elected:
    """The leader and the ISR without those who leave; somebody in sync must stay."""
    replicas = tuple(each for each in partition.replicas if each not in without)
    isr = tuple(each for each in partition.isr if each in replicas)
    kept = replace(partition, replicas=replicas, isr=isr)
    live = office.live(where, replicas)
    outcome = elected(kept, live, unclean=False, doubtful=office.doubtful)
    if outcome.leader == NO_LEADER:
        raise EligibleLeadersNotAvailable(f"no replica of {where} that stays is in sync")
    return outcome


async def _write_assignment(
    office: Office, topic: Topic, where: TopicPartition, partition: Partition
) -> None:
    parts = {**office.image.topics[topic.name].partitions, where.partition: partition}
    await office.term.write(
        Set(paths.topic(topic.name), encode(assignment_of(Topic(topic.name, topic.id, parts))))
    )
    _assign(office, where, partition)


def _assign(office: Office, where: TopicPartition, partition: Partition) -> None:
    """Take only who replicates into the image: the state is written with an epoch of its own."""
    known = office.image.partition(where)
    assert known is not None
    assigned = replace(
        known,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
    )
    office.image = office.image.apply(ImageDelta(partitions={where: assigned}))


async def _write_state(
    office: Office,
    topic: Topic,
    where: TopicPartition,
    partition: Partition,
    outcome: Elected,
    stopped: tuple[BrokerId, ...],
    *,
    delete: bool = True,
) -> bool:
    """The state in a new leader epoch, told to everybody together with who must stop; False if
    somebody else has written it.
    """
    known = office.image.partition(where)
    assert known is not None
    office.image = office.image.apply(
        ImageDelta(partitions={where: replace(partition, partition_epoch=known.partition_epoch)})
    )
    changes = await write_elected(office, {where: outcome})
    if not changes:
        _assign(office, where, known)
        return False
    await office.announce(
        ImageDelta(partitions={each.where: each.state for each in changes.values()}),
        partitions=changes.values(),
        stopped=[
            StoppedReplicas(
                where, topic.id, stopped, delete=delete, leader_epoch=partition.leader_epoch
            )
        ]
        if stopped
        else [],
    )
    return True
