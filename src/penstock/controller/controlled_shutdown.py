"""A broker that is about to stop gives away what it leads first, so that nobody has to wait."""

from penstock.controller.change import StoppedReplicas
from penstock.controller.office import Office
from penstock.controller.partition_states import write_elected
from penstock.controller.repair import Unclean, changes_of, repairs
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition


class StaleBrokerEpoch(KafkaError):
    """The broker has registered anew since, or was never there."""

    code = ErrorCode.STALE_BROKER_EPOCH


def check_broker_epoch(office: Office, broker: BrokerId, epoch: int) -> None:
    known = office.image.brokers.get(broker)
    if known is None or epoch not in {-1, known.epoch}:
        raise StaleBrokerEpoch(f"broker {broker} is not registered in epoch {epoch}")


async def shut_down(
    office: Office, broker: BrokerId, epoch: int, unclean: Unclean
) -> list[TopicPartition]:
    """Move everything away from the broker. What remains has no other replica in sync."""
    check_broker_epoch(office, broker, epoch)
    office.leaving[broker] = office.image.brokers[broker].epoch
    changes = await write_elected(office, repairs(office, unclean))
    if changes:
        stopped = [
            StoppedReplicas(
                each.where,
                each.topic_id,
                (broker,),
                delete=False,
                leader_epoch=each.state.leader_epoch,
            )
            for each in changes.values()
            if broker in each.state.replicas and each.state.leader != broker
        ]
        await office.announce(
            changes_of(changes.values()), partitions=changes.values(), stopped=stopped
        )
    return [
        TopicPartition(topic.name, index)
        for topic in office.image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == broker
    ]
