"""CreatePartitions (key 37, v0-v3): more partitions for topics; never fewer.

Refused: topics that are unknown or twice in the request, invalid assignments.
"""

from collections import Counter

from penstock.broker.context import Context
from penstock.broker.translate.capacity import check_room
from penstock.controller.topic_rules import UnknownTopic
from penstock.controller.topics import MorePartitions
from penstock.errors import InvalidRequest, KafkaError
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def create_partitions(
    request: CreatePartitionsRequest, ctx: Context
) -> CreatePartitionsResponse:
    named = Counter(topic.name for topic in request.topics)
    results = [
        refused(name, InvalidRequest("Duplicate topic name."))
        for name, count in named.items()
        if count > 1
    ]
    for topic in request.topics:
        if named[topic.name] > 1:
            continue
        try:
            check_room(replicas(topic, ctx), ctx)
            await ctx.services.control.controller.create_partitions(
                wanted(topic), validate_only=request.validate_only
            )
        except KafkaError as error:
            results.append(refused(topic.name, error))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    return CreatePartitionsResponse(results=results)


def replicas(topic: CreatePartitionsTopic, ctx: Context) -> int:
    """The number of new replicas; 0 for an unknown topic."""
    known = ctx.services.cluster.image.topics.get(topic.name)
    if known is None:
        return 0
    factor = max((len(each.replicas) for each in known.partitions.values()), default=0)
    return max(topic.count - len(known.partitions), 0) * factor


def wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    chosen = topic.assignments
    assignments = None if chosen is None else tuple(tuple(each.broker_ids) for each in chosen)
    return MorePartitions(topic.name, topic.count, assignments)


def refused(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    text = None if isinstance(error, UnknownTopic) else str(error)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=text)
