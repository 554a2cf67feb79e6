"""Controlled shutdown: other brokers lead before this one stops, so that no client waits."""

from penstock.controller.context import ControllerContext
from penstock.controller.partition_states import write_elected
from penstock.controller.repair import AllowsUnclean, delta_of, repairs
from penstock.controller.state_change import StoppedReplicas
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition


class StaleBrokerEpoch(KafkaError):
    """The broker has registered again since, or was never registered."""

    code = ErrorCode.STALE_BROKER_EPOCH


def check_broker_epoch(context: ControllerContext, broker: BrokerId, epoch: int) -> None:
    known = context.image.brokers.get(broker)
    if known is None or epoch not in {-1, known.epoch}:
        raise StaleBrokerEpoch(f"broker {broker} is not registered in epoch {epoch}")


async def shut_down(
    context: ControllerContext, broker: BrokerId, epoch: int, allows_unclean: AllowsUnclean
) -> list[TopicPartition]:
    """Move leadership away from the broker. Returns the partitions that it still leads, which have
    no other in-sync replica.
    """
    check_broker_epoch(context, broker, epoch)
    context.shutting_down[broker] = context.image.brokers[broker].epoch
    changes = await write_elected(context, repairs(context, allows_unclean))
    if changes:
        stopped = [
            StoppedReplicas(
                each.topic_partition,
                each.topic_id,
                (broker,),
                delete=False,
                leader_epoch=each.state.leader_epoch,
            )
            for each in changes.values()
            if broker in each.state.replicas and each.state.leader != broker
        ]
        await context.announce(
            delta_of(changes.values()), partitions=changes.values(), stopped=stopped
        )
    return [
        TopicPartition(topic.name, index)
        for topic in context.image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == broker
    ]
