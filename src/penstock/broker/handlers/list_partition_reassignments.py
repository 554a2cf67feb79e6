"""ListPartitionReassignments (key 46, v0): ongoing reassignments, of all partitions or some."""

from collections.abc import Iterable

from penstock.broker.context import Context
from penstock.metadata.image import Topic
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: Context
) -> ListPartitionReassignmentsResponse:
    topics = ctx.services.cluster.image.topics
    if request.topics is None:
        requested = {name: list(topic.partitions) for name, topic in topics.items()}
    else:
        requested = {each.name: each.partition_indexes for each in request.topics}
    moving = {
        name: list(ongoing(topics[name], indexes))
        for name, indexes in requested.items()
        if name in topics
    }
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in moving.items()
            if partitions
        ],
    )


def ongoing(topic: Topic, indexes: Iterable[int]) -> Iterable[OngoingPartitionReassignment]:
    for index in indexes:
        state = topic.partitions.get(index)
        if state is not None and (state.adding_replicas or state.removing_replicas):
            yield OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding_replicas),
                removing_replicas=list(state.removing_replicas),
            )
