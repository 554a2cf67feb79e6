"""Brokers register and disappear; their partitions get new leaders and ISRs."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from penstock.controller.context import ControllerContext
from penstock.controller.repair import AllowsUnclean, leave_unwritten, repair
from penstock.controller.state_change import all_partitions
from penstock.controller.topic_life import unfinished_deletions
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion, NoNode
from penstock.metadata.image import Broker, ImageDelta
from penstock.metadata.store import Delete
from penstock.types import BrokerId, TopicPartition

ATTEMPTS = 5


async def brokers_changed(
    context: ControllerContext, registered: Mapping[BrokerId, Broker], allows_unclean: AllowsUnclean
) -> None:
    """Apply the registrations in the store to the image.

    A broker with another epoch has died and come back, even if its process never stopped. It
    leaves every ISR that has another live member, and rejoins once it has caught up.
    """
    known = context.image.brokers
    dead, joined = missing_from(registered, known), missing_from(known, registered)
    if dead:
        context.image = context.image.apply(ImageDelta(brokers={each.id: None for each in dead}))
        for each in dead:
            context.shutting_down.pop(each.id, None)
        context.replicas_on_offline_dirs = {
            (broker, topic_partition)
            for broker, topic_partition in context.replicas_on_offline_dirs
            if broker in context.image.brokers
        }
        gone = {each.id for each in dead}
        context.caught_up = {each for each in context.caught_up if each[0] not in gone}
        for _ in range(ATTEMPTS):
            await repair(context, allows_unclean)
            if not context.changed_elsewhere:
                break
            # Another writer was faster. Before the broker is taken for alive again it must have
            # left its ISRs: it may come back without records that it had acknowledged.
        left = leave_unwritten(context, allows_unclean)
        if left:
            await context.announce(ImageDelta(), metadata_only=left)
    if joined:
        context.image = context.image.apply(ImageDelta(brokers={each.id: each for each in joined}))
        ids = [each.id for each in joined]
        await repair(
            context, allows_unclean, joined=ids, stopped=unfinished_deletions(context, ids)
        )


def missing_from(
    others: Mapping[BrokerId, Broker], brokers: Mapping[BrokerId, Broker]
) -> list[Broker]:
    """The brokers that `others` lacks, or has in another epoch."""
    return [each for each in brokers.values() if _epoch(others, each.id) != each.epoch]


def _epoch(brokers: Mapping[BrokerId, Broker], broker: BrokerId) -> int | None:
    found = brokers.get(broker)
    return None if found is None else found.epoch


async def replicas_failed(
    context: ControllerContext,
    broker: BrokerId,
    epoch: int,
    partitions: Iterable[TopicPartition],
    allows_unclean: AllowsUnclean,
) -> None:
    """A broker reports replicas in a failed log directory.

    The report holds only for the broker epoch in which it was made. A broker that has restarted
    since may have a working directory, and would otherwise be kept out of every ISR for ever.
    """
    if _epoch(context.image.brokers, broker) == epoch:
        context.replicas_on_offline_dirs |= {(broker, each) for each in partitions}
        await repair(context, allows_unclean)


async def replicas_usable(
    context: ControllerContext,
    broker: BrokerId,
    epoch: int,
    partitions: Iterable[TopicPartition],
    allows_unclean: AllowsUnclean,
) -> None:
    """A broker has logs that it could not make before, for example for lack of descriptors."""
    if _epoch(context.image.brokers, broker) == epoch:
        usable = context.replicas_on_offline_dirs & {(broker, each) for each in partitions}
        if usable:
            context.replicas_on_offline_dirs -= usable
            await repair(context, allows_unclean)


async def resend_failed(context: ControllerContext) -> None:
    """Let brokers try again to make replicas lead or follow that had no usable log."""
    failed = {topic_partition for _, topic_partition in context.replicas_on_offline_dirs}
    again = [each for each in all_partitions(context.image) if each.topic_partition in failed]
    if again:
        await context.announce(ImageDelta(), partitions=again)


async def remove_registration(context: ControllerContext, broker: BrokerId, epoch: int) -> None:
    """Remove the registration of a broker that refuses connections, before its session ends.

    This is safe even if the broker lives: it cannot change an ISR in its old epoch, and registers
    again.
    """
    if _epoch(context.image.brokers, broker) == epoch:
        path = paths.broker(broker)
        node = (await context.store.get_many([path])).get(path)
        if node is not None and node.created_zxid == epoch:
            with suppress(BadVersion, NoNode):
                await context.epoch.write(Delete(path, node.version))
