"""DescribeProducers (key 61, v0): the producers that a partition's leader has state of."""

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.controller.topic_rules import check_name
from penstock.replication import fencing
from penstock.replication.partitions import partition_here
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(
    request: DescribeProducersRequest, ctx: Context
) -> DescribeProducersResponse:
    def answer(topic: str, index: int) -> PartitionResponse:
        try:
            check_name(topic)
            services = ctx.services
            partition = partition_here(
                services.replicas.partitions, services.cluster.image, topic, index
            )
            fencing.check_leader(partition)
        except PARTITION_ERRORS as error:
            return PartitionResponse(partition_index=index, error_code=code_of(error))
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.producer_epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=(
                        -1
                        if entry.current_txn_first_offset is None
                        else entry.current_txn_first_offset
                    ),
                )
                for entry in partition.log.producers.producers.values()
            ],
        )

    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[answer(topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
