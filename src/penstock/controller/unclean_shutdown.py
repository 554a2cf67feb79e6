"""The end of an unclean shutdown: when a broker that may lack records is trusted again.

A broker whose machine crashed marks its registration (`unclean_shutdown`). It leaves every ISR that
has another live member, and rejoins by the records that it has now. Once no ISR membership is left
from before the crash, the controller clears the mark, and the broker does not set it again.
Otherwise two brokers that once lost power could never take over from a third, and a partition
would wait for the very broker that lost most.
"""

import logging
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from penstock.controller.context import ControllerContext
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion, NoNode
from penstock.metadata.image import Broker, ImageDelta, PartitionRegistration
from penstock.metadata.records import decode, encode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Set
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)


async def clear_resolved(context: ControllerContext) -> None:
    """Clear the mark of every broker that is in no ISR from before its unclean shutdown."""
    for broker in context.unclean_shutdown_brokers:
        if not any(
            _is_unresolved(context, TopicPartition(topic.name, index), partition, broker)
            for topic in context.image.topics.values()
            for index, partition in topic.partitions.items()
        ):
            await _clear(context, context.image.brokers[broker])


def _is_unresolved(
    context: ControllerContext,
    topic_partition: TopicPartition,
    partition: PartitionRegistration,
    broker: BrokerId,
) -> bool:
    if topic_partition in context.changed_elsewhere:
        # It has left the ISR in the image, perhaps not in the store: the next controller would
        # elect it from there.
        return broker in partition.replicas
    return (
        may_predate_shutdown(partition, broker)
        and (broker, topic_partition) not in context.caught_up
    )


def may_predate_shutdown(partition: PartitionRegistration, broker: BrokerId) -> bool:
    """Whether the broker may be in this ISR from before its unclean shutdown.

    A leader is not: it was elected after it came back, and its log counts whatever it lacks.
    """
    return broker in partition.isr and broker != partition.leader


async def _clear(context: ControllerContext, broker: Broker) -> None:
    path = paths.broker(broker.id)
    node = (await context.store.get_many([path])).get(path)
    if node is None or node.created_zxid != broker.epoch:
        return  # it has registered again, which a watch reports soon
    registration = replace(decode(BrokerRegistration, node), unclean_shutdown=UNSET)
    with suppress(BadVersion, NoNode):
        await context.epoch.write(Set(path, encode(registration), node.version))
        cleared = replace(broker, unclean_shutdown=False)
        context.image = context.image.apply(ImageDelta(brokers={broker.id: cleared}))
        logger.info(
            "broker %s has caught up after its unclean shutdown and may lead again", broker.id
        )
