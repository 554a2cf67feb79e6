"""AlterPartitionReassignments (key 45, v0-v1): move partitions to other replicas (KIP-455).

Another order or fewer replicas take effect at once. New replicas copy the partition first; then the
old ones are removed. Refused: unknown brokers; cancelling where nothing is being moved.
"""

from penstock.broker.context import Context
from penstock.controller.reassignment import NoReassignmentInProgress
from penstock.errors import KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, ctx: Context
) -> AlterPartitionReassignmentsResponse:
    async def answer(topic: str, part: ReassignablePartition) -> ReassignablePartitionResponse:
        index = part.partition_index
        try:
            await ctx.services.control.controller.reassign(
                TopicPartition(topic, index),
                part.replicas,
                factor_may_change=request.allow_replication_factor_change,
            )
        except KafkaError as error:
            text = None if isinstance(error, NoReassignmentInProgress) else str(error)
            return ReassignablePartitionResponse(
                partition_index=index, error_code=error.code, error_message=text
            )
        return ReassignablePartitionResponse(partition_index=index, error_message=None)

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",  # as in Kafka
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[await answer(topic.name, p) for p in topic.partitions]
            )
            for topic in request.topics
        ],
    )
