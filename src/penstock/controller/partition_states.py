"""Writes the `state` nodes: of new partitions, and of partitions with a new leader."""

import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec import UNSET

from penstock.controller.context import ControllerContext
from penstock.controller.leader_election import Elected, first_elected
from penstock.controller.state_change import PartitionChange
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion, NodeExists, NoNode, StoreError
from penstock.metadata.image import ImageDelta, PartitionRegistration, Topic
from penstock.metadata.reader import state_of
from penstock.metadata.records import NO_LEADER, PartitionState, encode
from penstock.metadata.store import Answer, Create, Node, Operation, Set
from penstock.types import BrokerId, LeaderEpoch, TopicPartition

logger = logging.getLogger(__name__)

FIRST_EPOCH = LeaderEpoch(0)

CHANGED_ELSEWHERE = (BadVersion, NodeExists, NoNode)
"""Refusals which mean that another writer has changed the state. Any other, such as by an access
control list, would recur if the write were tried again at once.
"""


async def bring_online(
    context: ControllerContext,
    topics: Iterable[Topic],
    epochs: Mapping[TopicPartition, LeaderEpoch] | None = None,
) -> list[PartitionChange]:
    """Elect the first leader of each partition that has no state yet.

    A partition whose replicas are all down waits until one comes up. A partition whose state
    exists already, or cannot be written, waits for the next repair. `epochs` gives the first
    epoch of partitions that have records already; only the first of their replicas is known to
    have all of these. All others begin at 0.
    """
    pending = [
        (topic, index, partition)
        for topic in topics
        for index, partition in topic.partitions.items()
        if partition.partition_epoch < 0
    ]
    multis, changes = [], []
    existing = await _existing_parents(context, {topic.name for topic, _, _ in pending})
    for topic, index, partition in pending:
        topic_partition = TopicPartition(topic.name, index)
        eligible = partition.replicas
        if topic_partition in (epochs or ()):
            eligible = eligible[:1]
        outcome = first_elected(eligible, context.live_replicas(topic_partition, eligible))
        if outcome is None:
            continue
        epoch = (epochs or {}).get(topic_partition, FIRST_EPOCH)
        state = _decided(context, topic_partition, partition, outcome, epoch)
        operations: list[Operation] = []
        for parent in (paths.partitions(topic.name), paths.partition(topic_partition)):
            if parent not in existing:
                operations.append(Create(parent))
                existing.add(parent)
        operations.append(
            Create(paths.partition_state(topic_partition), encode(state_record(state)))
        )
        multis.append(operations)
        state = msgspec.structs.replace(state, partition_epoch=0)
        changes.append(
            PartitionChange(
                topic_partition, topic.id, state, is_new=topic_partition not in (epochs or ())
            )
        )
    answers = await context.epoch.write_each(multis)
    await reread(context, _refused((each.topic_partition for each in changes), answers))
    written = [
        change
        for change, answer in zip(changes, answers, strict=True)
        if not isinstance(answer, StoreError)
    ]
    # A new partition has no records that a broker could have lost before.
    context.caught_up |= {
        (broker, each.topic_partition)
        for each in written
        if each.is_new
        for broker in context.unclean_shutdown_brokers
        if broker in each.state.isr
    }
    return written


def _refused(
    partitions: Iterable[TopicPartition], answers: Iterable[list[Answer] | StoreError]
) -> dict[TopicPartition, StoreError]:
    return {
        topic_partition: answer
        for topic_partition, answer in zip(partitions, answers, strict=True)
        if isinstance(answer, StoreError)
    }


async def reread(context: ControllerContext, refused: Mapping[TopicPartition, StoreError]) -> None:
    """Read the states that another writer changed, and schedule a repair.

    Brokers ignore a leader epoch that they know; the repair gives these partitions a new one.
    States that cannot be written or read are tried again later.
    """
    if not refused:
        return
    changed = {
        topic_partition: error
        for topic_partition, error in refused.items()
        if isinstance(error, CHANGED_ELSEWHERE)
    }
    for topic_partition in refused.keys() - changed.keys():
        logger.error(
            "the state of %s cannot be written, trying again later: %s",
            topic_partition,
            refused[topic_partition],
        )
        context.repair_later()
    found = await context.store.get_many(map(paths.partition_state, changed))
    states = {}
    for topic_partition, error in changed.items():
        logger.warning(
            "the state of %s was changed by another writer, reading it again: %s",
            topic_partition,
            error,
        )
        node, before = (
            found.get(paths.partition_state(topic_partition)),
            context.image.partition(topic_partition),
        )
        if node is None or before is None:
            continue
        after = state_of(before, node)
        is_lost = after is None or after.leader_epoch < before.leader_epoch
        if is_lost and before.partition_epoch >= 0:
            # Only controllers decide on states, so the last one that was decided still holds. An
            # older one, put back by an operator, names replicas that may lack records.
            logger.warning("the state of %s is written again as it was last known", topic_partition)
            after = msgspec.structs.replace(before, partition_epoch=node.version)
        if after is None:
            context.repair_later()  # nothing else reads the node once an operator has corrected it
        else:
            states[topic_partition] = _without(after, context.unclean_replicas(topic_partition))
    if states:
        context.image = context.image.apply(ImageDelta(partitions=states))
        context.changed_elsewhere |= states.keys()
        context.repair_soon()


def _without(
    partition: PartitionRegistration, untrusted: Collection[BrokerId]
) -> PartitionRegistration:
    """The partition without replicas that may lack records, unless no other is in its ISR. They had
    left it, which the other writer did not know.
    """
    isr = tuple(each for each in partition.isr if each not in untrusted)
    if not isr:
        return partition
    leader = partition.leader if partition.leader in isr else NO_LEADER
    return msgspec.structs.replace(partition, leader=leader, isr=isr)


async def _existing_parents(context: ControllerContext, topics: Collection[str]) -> set[str]:
    """Nodes left by an interrupted creation, or by a Kafka that writes one node at a time."""
    found = await context.store.children_many(map(paths.partitions, topics))
    return {
        *found,
        *(f"{parent}/{index}" for parent, indexes in found.items() for index in indexes),
    }


async def write_elected(
    context: ControllerContext, outcomes: Mapping[TopicPartition, Elected]
) -> dict[TopicPartition, PartitionChange]:
    """Write new leaders, each in a new leader epoch. Partitions whose state another writer has
    changed are left out of the result, and read again.
    """
    multis: list[list[Operation]] = []
    decided: list[tuple[TopicPartition, Topic, PartitionRegistration]] = []
    for topic_partition, outcome in outcomes.items():
        topic = context.image.topics[topic_partition.topic]
        before = topic.partitions[topic_partition.partition]
        epoch = LeaderEpoch(before.leader_epoch + 1)
        state = _decided(context, topic_partition, before, outcome, epoch)
        path = paths.partition_state(topic_partition)
        multis.append([Set(path, encode(state_record(state)), before.partition_epoch)])
        decided.append((topic_partition, topic, state))
    written = {}
    answers = await context.epoch.write_each(multis)
    for (topic_partition, topic, state), answer in zip(decided, answers, strict=True):
        if not isinstance(answer, StoreError):
            (node,) = answer
            assert isinstance(node, Node)
            state = msgspec.structs.replace(state, partition_epoch=node.version)
            context.counts.elected += 1
            context.counts.unclean += outcomes[topic_partition].unclean
            written[topic_partition] = PartitionChange(topic_partition, topic.id, state)
            context.changed_elsewhere.discard(topic_partition)
    await reread(context, _refused((topic_partition for topic_partition, _, _ in decided), answers))
    return written


def _decided(
    context: ControllerContext,
    topic_partition: TopicPartition,
    before: PartitionRegistration,
    outcome: Elected,
    epoch: LeaderEpoch,
) -> PartitionRegistration:
    return msgspec.structs.replace(
        before,
        leader=outcome.leader,
        isr=outcome.isr,
        leader_epoch=epoch,
        controller_epoch=context.epoch.number,
        recovering=outcome.unclean,
        offline_replicas=context.offline_replicas(topic_partition, before),
    )


def state_record(state: PartitionRegistration) -> PartitionState:
    return PartitionState(
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=1 if state.recovering else UNSET,
    )
