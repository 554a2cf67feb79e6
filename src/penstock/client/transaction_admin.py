"""Lists and describes transactions, and aborts one that hangs (KIP-664)."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.groups import find_coordinator
from penstock.client.producers import ActiveProducer
from penstock.client.route import KeyType, ToBroker, ToCoordinator, ToLeader
from penstock.types import BrokerId, ProducerId, TopicPartition
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from penstock.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id as its coordinator lists it."""

    id: str
    coordinator: BrokerId
    producer_id: ProducerId
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id as its coordinator describes it; `start_ms` is -1 between transactions."""

    id: str
    coordinator: BrokerId
    producer_id: ProducerId
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    client: Client,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    running_longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Every transactional id that passes the filters, sorted; each broker lists its own."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=running_longer_than_ms,
        transactional_id_pattern=pattern,
    )

    async def attempt() -> list[TransactionListing]:
        found = []
        for broker in (await client.cluster()).brokers:
            connection = await client.connection(ToBroker(broker))
            response = await connection.call(
                request, ListTransactionsResponse, timeout_ms=client.request_timeout_ms
            )
            check(response.error_code, f"transactions of broker {broker}")
            found += [
                TransactionListing(
                    each.transactional_id,
                    broker,
                    ProducerId(each.producer_id),
                    each.transaction_state,
                )
                for each in response.transaction_states
            ]
        return sorted(found, key=lambda each: each.id)

    return await client.retrying(attempt)


async def describe_transaction(client: Client, transactional_id: str) -> TransactionDescription:
    def raise_refusal(response: DescribeTransactionsResponse) -> None:
        for each in response.transaction_states:
            check(each.error_code, f"transactional id {transactional_id}")

    to = ToCoordinator(transactional_id, KeyType.TRANSACTION)
    coordinator = await find_coordinator(client, to)
    response = await client.call(
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
        to=to,
        check=raise_refusal,
    )
    (found,) = response.transaction_states
    return TransactionDescription(
        transactional_id,
        coordinator.id,
        ProducerId(found.producer_id),
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        tuple(
            TopicPartition(topic.topic, index)
            for topic in found.topics
            for index in topic.partitions
        ),
    )


async def abort_hanging(
    client: Client, partition: TopicPartition, producer: ActiveProducer
) -> None:
    """Write an abort marker for a transaction that no coordinator ends.

    The coordinator's epoch is that of the producer's latest marker: the leader refuses older ones.
    """
    marker = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[
            WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        ],
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )

    def raise_refusal(response: WriteTxnMarkersResponse) -> None:
        for result in response.markers:
            for topic in result.topics:
                for each in topic.partitions:
                    check(each.error_code, f"transaction of producer {producer.id} in {partition}")

    await client.call(
        WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        to=ToLeader(partition),
        check=raise_refusal,
    )
