"""The take-over by a new controller, before it serves requests.

It finishes what its predecessor began, elects leaders where they are missing, and sends the whole
state of the cluster to every broker.
"""

from penstock.controller import features, reassignment, topic_life, unclean_shutdown
from penstock.controller.context import ControllerContext
from penstock.controller.partition_states import bring_online, write_elected
from penstock.controller.repair import AllowsUnclean, delta_of, leave_unwritten, repairs
from penstock.controller.state_change import all_partitions
from penstock.metadata.image import ImageDelta


async def take_over(context: ControllerContext, allows_unclean: AllowsUnclean) -> None:
    await features.prepare(context)
    await topic_life.resume_deletions(context)
    named = await topic_life.with_ids(context, context.image.topics.values())
    context.image = context.image.apply(ImageDelta(topics=named))
    changes = {
        each.topic_partition: each
        for each in await bring_online(context, context.image.topics.values())
    }
    # A broker whose machine crashed may have come back while there was no controller. Then its ISR
    # memberships may date from before the crash, which cannot be found out. So it leaves every ISR
    # that has another live member, and rejoins once it has caught up.
    suspected = context.unclean_shutdown_brokers
    written = await write_elected(context, repairs(context, allows_unclean, suspected=suspected))
    context.image = context.image.apply(delta_of(written.values()))
    leave_unwritten(context, allows_unclean, suspected=suspected)
    changes |= written
    delta = delta_of(changes.values())
    everything = all_partitions(context.image.apply(delta))
    await context.announce(
        delta,
        partitions=[changes.get(each.topic_partition, each) for each in everything],
        joined=context.image.brokers,
        topic_configs=context.image.topic_configs,
        broker_configs=True,
    )
    await unclean_shutdown.clear_resolved(context)
    await reassignment.resume(context)
