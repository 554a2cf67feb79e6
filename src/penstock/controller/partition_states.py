"""Writing who leads: the `state` nodes of new partitions, and of those with a new leader."""

import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec import UNSET

from penstock.controller.change import PartitionChange
from penstock.controller.election import Elected, first_elected
from penstock.controller.office import Office
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta, Partition, Topic
from penstock.metadata.reader import state_of
from penstock.metadata.records import PartitionState, encode
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import Answer, Create, Node, Operation, Set
from penstock.types import LeaderEpoch, TopicPartition

logger = logging.getLogger(__name__)

FIRST_EPOCH = LeaderEpoch(0)


async def bring_online(
    office: Office,
    topics: Iterable[Topic],
    epochs: Mapping[TopicPartition, LeaderEpoch] | None = None,
) -> list[PartitionChange]:
    """Give each partition that has no state yet its first leader.

    One whose replicas are all down is left for the time when one of them comes, and one whose
    state is there already, or cannot be written, for the next repair. `epochs` are those of
    partitions that have records already; others begin at 0.
    """
    pending = [
        (topic, index, partition)
        for topic in topics
        for index, partition in topic.partitions.items()
        if partition.partition_epoch < 0
    ]
    multis, changes = [], []
    there = await _existing_parents(office, {topic.name for topic, _, _ in pending})
    for topic, index, partition in pending:
        where = TopicPartition(topic.name, index)
        outcome = first_elected(partition.replicas, office.live(where, partition.replicas))
        if outcome is None:
            continue
        epoch = (epochs or {}).get(where, FIRST_EPOCH)
        state = _decided(office, where, partition, outcome, epoch)
        operations: list[Operation] = []
        for parent in (paths.partitions(topic.name), paths.partition(where)):
            if parent not in there:
                operations.append(Create(parent))
                there.add(parent)
        operations.append(Create(paths.partition_state(where), encode(state_record(state))))
        multis.append(operations)
        state = msgspec.structs.replace(state, partition_epoch=0)
        changes.append(PartitionChange(where, topic.id, state, is_new=where not in (epochs or ())))
    answers = await office.term.write_each(multis)
    await reread(office, _refused((each.where for each in changes), answers))
    return [
        change
        for change, answer in zip(changes, answers, strict=True)
        if not isinstance(answer, StoreError)
    ]


def _refused(
    partitions: Iterable[TopicPartition], answers: Iterable[list[Answer] | StoreError]
) -> dict[TopicPartition, StoreError]:
    return {
        where: answer
        for where, answer in zip(partitions, answers, strict=True)
        if isinstance(answer, StoreError)
    }


async def reread(office: Office, refused: Mapping[TopicPartition, StoreError]) -> None:
    """Take over states that are not as this controller knew them: somebody else wrote them.

    Brokers hear of such a partition only in a new leader epoch, which a repair gives it.
    """
    if not refused:
        return
    found = await office.store.get_many(map(paths.partition_state, refused))
    states = {}
    for where, error in refused.items():
        logger.warning("the state of %s is read again: %s", where, error)
        node, before = found.get(paths.partition_state(where)), office.image.partition(where)
        if node is not None and before is not None:
            after = state_of(before, node)
            if after is not None:
                states[where] = after
    if states:
        office.image = office.image.apply(ImageDelta(partitions=states))
        office.outrun |= states.keys()
        office.repair_soon()


async def _existing_parents(office: Office, topics: Collection[str]) -> set[str]:
    """What a start that was broken off has left, or a Kafka that writes one node at a time."""
    found = await office.store.children_many(map(paths.partitions, topics))
    return {
        *found,
        *(f"{parent}/{index}" for parent, indexes in found.items() for index in indexes),
    }


async def write_elected(
    office: Office, outcomes: Mapping[TopicPartition, Elected]
) -> dict[TopicPartition, PartitionChange]:
    """Write new leaders, each in an epoch of its own. Partitions whose state somebody else has
    changed are left out, and read again.
    """
    multis: list[list[Operation]] = []
    decided: list[tuple[TopicPartition, Topic, Partition]] = []
    for where, outcome in outcomes.items():
        topic = office.image.topics[where.topic]
        before = topic.partitions[where.partition]
        epoch = LeaderEpoch(before.leader_epoch + 1)
        state = _decided(office, where, before, outcome, epoch)
        path = paths.partition_state(where)
        multis.append([Set(path, encode(state_record(state)), before.partition_epoch)])
        decided.append((where, topic, state))
    written = {}
    answers = await office.term.write_each(multis)
    for (where, topic, state), answer in zip(decided, answers, strict=True):
        if not isinstance(answer, StoreError):
            (node,) = answer
            assert isinstance(node, Node)
            state = msgspec.structs.replace(state, partition_epoch=node.version)
            office.counts.unclean += outcomes[where].unclean
            written[where] = PartitionChange(where, topic.id, state)
            office.outrun.discard(where)
    await reread(office, _refused((where for where, _, _ in decided), answers))
    return written


def _decided(
    office: Office,
    where: TopicPartition,
    before: Partition,
    outcome: Elected,
    epoch: LeaderEpoch,
) -> Partition:
    return msgspec.structs.replace(
        before,
        leader=outcome.leader,
        isr=outcome.isr,
        leader_epoch=epoch,
        controller_epoch=office.term.epoch,
        recovering=outcome.unclean,
        offline_replicas=office.offline(where, before),
    )


def state_record(state: Partition) -> PartitionState:
    return PartitionState(
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=1 if state.recovering else UNSET,
    )
