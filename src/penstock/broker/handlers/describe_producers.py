"""DescribeProducers (key 61, v0): the producers whose state a partition's leader has.

A repeated partition is left out, since it may have very many producers.
"""

from collections.abc import Coroutine, Generator
from typing import Any

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import by_topic, in_turns
from penstock.controller.topic_rules import check_name
from penstock.replication.partitions import partition_here
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def describe_producers(
    request: DescribeProducersRequest, ctx: Context
) -> DescribeProducersResponse | Coroutine[Any, Any, DescribeProducersResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: DescribeProducersRequest, ctx: Context
) -> Generator[None, None, DescribeProducersResponse]:
    named: set[tuple[str, int]] = set()

    def first(topic: TopicRequest, index: int) -> PartitionResponse | None:
        if (topic.name, index) in named:
            return None
        named.add((topic.name, index))
        return answer(topic.name, index, ctx)

    topics = yield from by_topic(
        request.topics,
        lambda topic: topic.partition_indexes,
        first,
        lambda topic, parts: TopicResponse(topic.name, [each for each in parts if each]),
        weight=lambda part: 1 + (len(part.active_producers) if part else 0),
    )
    return DescribeProducersResponse(topics=topics)


def answer(topic: str, index: int, ctx: Context) -> PartitionResponse:
    try:
        check_name(topic)
        services = ctx.services
        partition = partition_here(
            services.replicas.partitions, services.cluster.image, topic, index
        )
        partition.check_leader()
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
                    -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset
                ),
            )
            for entry in partition.log.producers.producers.values()
        ],
    )
