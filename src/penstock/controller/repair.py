"""New leaders and ISRs for partitions that need them.

One rule serves for a broker that died, is shutting down or came back, and for a failed directory:
each partition is elected among the replicas that are live now, and written if the outcome differs.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from penstock.config.effective import effective_topic_config, stored_layers
from penstock.controller import unclean_shutdown
from penstock.controller.context import ControllerContext
from penstock.controller.leader_election import Elected, elected
from penstock.controller.partition_states import bring_online, write_elected
from penstock.controller.state_change import PartitionChange, StoppedReplicas
from penstock.metadata.image import ImageDelta, PartitionRegistration
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)

AllowsUnclean = Callable[[str], bool]
"""Whether a topic allows an unclean leader election."""


def unclean_elections(context: ControllerContext, static: Mapping[str, str]) -> AllowsUnclean:
    """Decides by `unclean.leader.election.enable` of the topic, else of the brokers."""

    def allowed(topic: str) -> bool:
        image = context.image
        layers = stored_layers(static, image.default_broker_config, {})
        given = image.topic_configs.get(topic, {})
        return effective_topic_config(given, layers).unclean_leader_election_enable

    return allowed


def repairs(
    context: ControllerContext,
    allows_unclean: AllowsUnclean,
    *,
    suspected: Collection[BrokerId] = (),
    topic: str | None = None,
) -> dict[TopicPartition, Elected]:
    """The leaders and ISRs to write, of one topic or of all. Only reads the context.

    Suspected brokers leave every ISR that has another live member.
    """
    outcomes = {}
    for topic_partition, partition in _online_partitions(context, topic):
        outcome = _repaired(context, allows_unclean, topic_partition, partition, suspected)
        if outcome is not None:
            outcomes[topic_partition] = outcome
    return outcomes


def _repaired(
    context: ControllerContext,
    allows_unclean: AllowsUnclean,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    suspected: Collection[BrokerId],
) -> Elected | None:
    """The partition's leader and ISR; None if it can stay as it is."""
    unclean = context.unclean_replicas(topic_partition)
    live = context.live_replicas(topic_partition, partition.replicas)
    trusted = [each for each in live if each not in suspected]
    if any(each in trusted for each in partition.isr):
        live = trusted
    # The leader's machine may have crashed and come back while there was no controller to see it.
    # If it leads on, then in a new epoch: a replica out of sync may have what it has lost.
    is_suspect = partition.leader in unclean and partition.controller_epoch < context.epoch.number
    is_whole = partition.leader in live and all(each in live for each in partition.isr)
    is_changed_elsewhere = topic_partition in context.changed_elsewhere
    if is_whole and not is_suspect and not is_changed_elsewhere:
        return None
    before = replace(partition, leader=NO_LEADER) if is_suspect else partition
    outcome = elected(before, live, allow_unclean=False, unclean_shutdown=unclean)
    if outcome.leader == NO_LEADER:
        # A broker that is shutting down leads until it is gone: better than no leader, and better
        # than an unclean one, which may catch up before the broker has stopped.
        with_stopping = context.live_or_shutting_down_replicas(topic_partition, partition.replicas)
        outcome = elected(before, with_stopping, allow_unclean=False, unclean_shutdown=unclean)
    if outcome.leader == NO_LEADER and allows_unclean(topic_partition.topic):
        outcome = elected(before, live, allow_unclean=True, unclean_shutdown=unclean)
    if outcome.leader in unclean and outcome.leader != partition.leader:
        logger.warning(
            "%s: broker %s is elected after an unclean shutdown and may lack records",
            topic_partition,
            outcome.leader,
        )
    is_same = (outcome.leader, outcome.isr) == (partition.leader, partition.isr)
    return None if is_same and not is_suspect and not is_changed_elsewhere else outcome


def leave_unwritten(
    context: ControllerContext,
    allows_unclean: AllowsUnclean,
    *,
    suspected: Collection[BrokerId] = (),
) -> Collection[TopicPartition]:
    """Remove brokers from ISRs in the image where the store refuses the write, for example for lack
    of permission; otherwise a broker that comes back would lead on.

    Such a partition has no leader, or lacks that follower, until a repair has written its state.
    Returns these partitions.
    """
    left = {}
    for topic_partition, outcome in repairs(context, allows_unclean, suspected=suspected).items():
        partition = context.image.partition(topic_partition)
        assert partition is not None
        if partition.isr == (partition.leader,):
            continue  # no other replica has its records
        leader = partition.leader if outcome.leader == partition.leader else NO_LEADER
        isr = partition.isr if outcome.unclean else outcome.isr
        left[topic_partition] = replace(partition, leader=leader, isr=isr)
    if left:
        context.image = context.image.apply(ImageDelta(partitions=left))
        context.changed_elsewhere |= left.keys()  # so that the next repair writes them
        context.repair_later()
    return left.keys()


async def repair(
    context: ControllerContext,
    allows_unclean: AllowsUnclean,
    *,
    joined: Iterable[BrokerId] = (),
    stopped: Iterable[StoppedReplicas] = (),
) -> None:
    """Write the repairs and tell all brokers; brokers in `joined` receive the whole image."""
    changes = {
        each.topic_partition: each
        for each in await bring_online(context, context.image.topics.values())
    }
    changes |= await write_elected(context, repairs(context, allows_unclean))
    written = {each.topic_partition: each.state for each in changes.values()}
    offline_changed = {}
    for topic_partition, partition in _online_partitions(context):
        offline = context.offline_replicas(topic_partition, partition)
        if topic_partition not in written and offline != partition.offline_replicas:
            offline_changed[topic_partition] = replace(partition, offline_replicas=offline)
    await context.announce(
        ImageDelta(partitions=written | offline_changed),
        partitions=changes.values(),
        metadata_only=offline_changed,
        stopped=stopped,
        joined=joined,
    )
    await unclean_shutdown.clear_resolved(context)


async def repair_topic(
    context: ControllerContext, allows_unclean: AllowsUnclean, topic: str
) -> None:
    """Write the repairs of one topic and send them to all brokers.

    The time does not depend on the number of other topics: thousands may be altered one after the
    other.
    """
    changes = await write_elected(context, repairs(context, allows_unclean, topic=topic))
    if changes:
        await context.announce(delta_of(changes.values()), partitions=changes.values())
        await unclean_shutdown.clear_resolved(context)


def delta_of(changes: Iterable[PartitionChange]) -> ImageDelta:
    return ImageDelta(partitions={each.topic_partition: each.state for each in changes})


def _online_partitions(
    context: ControllerContext, name: str | None = None
) -> Iterable[tuple[TopicPartition, PartitionRegistration]]:
    """Partitions that have a `state` node, of the named topic or of all."""
    topics = context.image.topics
    for topic in topics.values() if name is None else filter(None, [topics.get(name)]):
        for index, partition in topic.partitions.items():
            if partition.partition_epoch >= 0:
                yield TopicPartition(topic.name, index), partition
