"""DescribeProducers (key 61, v0): the producers whose state a partition's leader has.

A repeated partition is left out, since it may have very many producers.
"""

from collections.abc import Coroutine, Generator
from typing import Any, Final

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN, in_turns
from penstock.controller.topic_rules import check_name
from penstock.log.producer_entry import ProducerEntry
from penstock.replication.partition_lookup import partition_here
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

A_PARTITION: Final = KEYS_A_TURN // PARTITIONS_A_TURN
"""The time that a partition takes, counted in producers: one may have a million of these."""


def describe_producers(
    request: DescribeProducersRequest, ctx: Context
) -> DescribeProducersResponse | Coroutine[Any, Any, DescribeProducersResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: DescribeProducersRequest, ctx: Context
) -> Generator[None, None, DescribeProducersResponse]:
    named: set[tuple[str, int]] = set()
    topics, done = [], 0
    for topic in request.topics:
        parts = []
        done += A_PARTITION  # a topic without partitions takes time too
        for index in topic.partition_indexes:
            done += A_PARTITION
            if (topic.name, index) not in named:
                named.add((topic.name, index))
                entries, error_code = producers_of(topic.name, index, ctx)
                states = []
                for entry in entries:
                    states.append(state_of(entry))
                    done += 1
                    if done >= KEYS_A_TURN:
                        done = 0
                        yield
                parts.append(PartitionResponse(index, error_code, active_producers=states))
            if done >= KEYS_A_TURN:
                done = 0
                yield
        topics.append(TopicResponse(topic.name, parts))
    return DescribeProducersResponse(topics=topics)


def producers_of(topic: str, index: int, ctx: Context) -> tuple[list[ProducerEntry], int]:
    """The producers of a partition, or the error code of its refusal."""
    try:
        check_name(topic)
        services = ctx.services
        partition = partition_here(
            services.replicas.partitions, services.cluster.image, topic, index
        )
        partition.check_leader()
    except PARTITION_ERRORS as error:
        return [], code_of(error)
    return list(partition.log.producers.producers.values()), 0


def state_of(entry: ProducerEntry) -> ProducerState:
    first_offset = entry.current_txn_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if first_offset is None else first_offset,
    )
