"""Finds transactions that no coordinator will end (KIP-664)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.client.cluster import Client
from penstock.client.producers import ActiveProducer, describe_producers
from penstock.client.transaction_admin import describe_transaction, list_transactions
from penstock.types import BrokerId, TopicPartition

TRANSACTION_TOPIC: Final = "__transaction_state"


class OpenTransaction(NamedTuple):
    """A producer's open transaction in a partition."""

    partition: TopicPartition
    producer: ActiveProducer


async def find_hanging(
    client: Client,
    partitions: Iterable[TopicPartition],
    *,
    older_than_ms: int,
    now_ms: int,
    broker: BrokerId | None = None,
) -> list[OpenTransaction]:
    """Transactions without a write for this long, which their coordinator does not know.

    `older_than_ms` is the brokers' `transaction.max.timeout.ms`: a live transaction ends by then.
    Raises `BrokerRefused` if a partition of the transaction topic has no leader.
    """
    producers = await describe_producers(client, partitions, broker)
    late = [
        OpenTransaction(partition, each)
        for partition, active in sorted(producers.items())
        for each in active
        if each.transaction_start >= 0 and now_ms - each.last_timestamp > older_than_ms
    ]
    if not late:
        return []
    # Transactions of a coordinator partition without a leader are not listed: they would seem to
    # be unknown, and an operator would abort live ones.
    for topic in await client.existing_topics([TRANSACTION_TOPIC]):
        for index in topic.partitions:
            topic.leader(index)
    ids = sorted({each.producer.id for each in late})
    listed = await list_transactions(client, producer_ids=ids)
    known = {
        each.producer_id: (await describe_transaction(client, each.id)).partitions
        for each in listed
    }
    return [each for each in late if each.partition not in known.get(each.producer.id, ())]
