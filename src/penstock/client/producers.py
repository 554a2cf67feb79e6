"""Describes the producers that are active in partitions (KIP-664)."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.leader_calls import call_broker, from_leaders
from penstock.types import BrokerId, Offset, ProducerId, TopicPartition, indexes_by_topic
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)

NO_TRANSACTION = -1


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer's state in a partition's log; coordinator epoch and start offset may be -1."""

    id: ProducerId
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: Offset
    """First offset of its open transaction; `NO_TRANSACTION` if it has none."""


async def describe_producers(
    client: Client, partitions: Iterable[TopicPartition], broker: BrokerId | None = None
) -> dict[TopicPartition, list[ActiveProducer]]:
    """The producers known to the leaders, or to the replicas on `broker`."""
    wanted = dict.fromkeys(partitions)
    if broker is None:
        return await from_leaders(client, wanted, _described)
    return await client.retrying(lambda: _described(client, broker, wanted))


async def _described(
    client: Client, broker: BrokerId, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer]]:
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name=name, partition_indexes=indexes)
            for name, indexes in indexes_by_topic(partitions).items()
        ]
    )
    response = await call_broker(client, broker, request, DescribeProducersResponse)
    found = {}
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            check(result.error_code, f"producers of {partition}", result.error_message)
            found[partition] = [_producer(each) for each in result.active_producers]
    return found


def _producer(state: ProducerState) -> ActiveProducer:
    return ActiveProducer(
        ProducerId(state.producer_id),
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        Offset(state.current_txn_start_offset),
    )
