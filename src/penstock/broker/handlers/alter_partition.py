"""AlterPartition (key 56, v0-v3): a leader proposes another ISR (KIP-497).

Between brokers only, and only the controller answers. Refused: if this broker is not the controller
(41), a stale broker epoch (77); per partition a sender that does not lead it, stale epochs, and
replicas that are dead, shutting down, or have restarted since (KIP-903).
"""

from penstock.broker.context import Context
from penstock.controller.isr_changes import IsrMember, RequestedIsr
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage, PartitionRegistration
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)


async def alter_partition(request: AlterPartitionRequest, ctx: Context) -> AlterPartitionResponse:
    controller = ctx.services.control.controller
    names = {id(topic): name_of(topic, controller.image, ctx) for topic in request.topics}
    outcomes = await controller.alter_isrs(
        BrokerId(request.broker_id),
        request.broker_epoch,
        [
            wanted(TopicPartition(names[id(topic)] or "", each.partition_index), each, ctx)
            for topic in request.topics
            for each in topic.partitions
            if names[id(topic)] is not None
        ],
    )
    return AlterPartitionResponse(
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[
                    answered(
                        each.partition_index,
                        outcomes.get(TopicPartition(names[id(topic)] or "", each.partition_index)),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def name_of(topic: TopicData, image: ClusterImage, ctx: Context) -> str | None:
    return topic.topic_name if ctx.version < 2 else image.topic_names.get(topic.topic_id)


def wanted(topic_partition: TopicPartition, requested: PartitionData, ctx: Context) -> RequestedIsr:
    members = (
        tuple(
            IsrMember(BrokerId(each.broker_id), each.broker_epoch)
            for each in requested.new_isr_with_epochs
        )
        if ctx.version >= 3
        else tuple(IsrMember(BrokerId(each)) for each in requested.new_isr)
    )
    return RequestedIsr(
        topic_partition,
        requested.leader_epoch,
        requested.partition_epoch,
        members,
        recovering=requested.leader_recovery_state == 1,
    )


def answered(
    index: int, outcome: PartitionRegistration | KafkaError | None
) -> ResponsePartitionData:
    if outcome is None:
        return ResponsePartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    if isinstance(outcome, KafkaError):
        return ResponsePartitionData(partition_index=index, error_code=outcome.code)
    return ResponsePartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=int(outcome.recovering),
        partition_epoch=outcome.partition_epoch,
    )
