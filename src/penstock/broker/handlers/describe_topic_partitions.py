"""DescribeTopicPartitions (key 75, v0): topics and their partitions, page by page (KIP-966).

A page ends after `response_partition_limit` partitions, or at the broker's own limit; its cursor is
the start of the next page. Without names, all topics are listed, sorted by name.
Refused: a cursor at a topic that is not among those named, or at a negative partition.
"""

from collections.abc import Coroutine, Generator, Iterable
from typing import Any

from penstock.broker.context import Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, in_turns
from penstock.broker.translate.operations import NOT_ASKED, topic_operations
from penstock.controller.topic_rules import InvalidTopic, check_name
from penstock.errors import ErrorCode
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.metadata.topic_names import INTERNAL_TOPICS
from penstock.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, ctx: Context
) -> DescribeTopicPartitionsResponse | Coroutine[Any, Any, DescribeTopicPartitionsResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: DescribeTopicPartitionsRequest, ctx: Context
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    topics = ctx.services.cluster.image.topics
    named = {each.name for each in request.topics}
    cursor = request.cursor or Cursor()
    strange = request.cursor is not None and named and cursor.topic_name not in named
    if strange or cursor.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.INVALID_REQUEST, name=each.name
                )
                for each in request.topics
            ]
        )
    names = [each for each in sorted(named or topics) if each >= cursor.topic_name]
    limit = ctx.services.config.network.max_request_partition_size_limit
    room = max(1, min(request.response_partition_limit, limit))
    page: list[DescribeTopicPartitionsResponseTopic] = []
    for count, name in enumerate(names, 1):
        if count % PARTITIONS_A_TURN == 0:
            yield
        if room == 0:
            return DescribeTopicPartitionsResponse(topics=page, next_cursor=Cursor(topic_name=name))
        topic = topics.get(name)
        if topic is None:
            page.append(unknown(name, ctx))
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        page.append(described(topic, indexes[:room], ctx))
        if len(indexes) > room:
            following = Cursor(topic_name=name, partition_index=indexes[room])
            return DescribeTopicPartitionsResponse(topics=page, next_cursor=following)
        room -= len(indexes)
    return DescribeTopicPartitionsResponse(topics=page)


def unknown(name: str, ctx: Context) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except InvalidTopic as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=topic_operations(ctx, name) if name else NOT_ASKED,
    )


def described(
    topic: Topic, indexes: Iterable[int], ctx: Context
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[partition(index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=topic_operations(ctx, topic.name),
    )


def partition(index: int, state: PartitionRegistration) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if state.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=list(state.offline_replicas),
    )
