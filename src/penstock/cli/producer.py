"""`penstock producer`: active producers of partitions."""

from typing import Any

import click

from penstock.cli.frame.command import Noun
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, iso_time, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.partition_scope import chosen_partitions
from penstock.client.producers import ActiveProducer, describe_producers
from penstock.types import TopicPartition

COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("PRODUCER", "producer_id"),
    Column("EPOCH", "producer_epoch"),
    Column("LAST SEQUENCE", "last_sequence"),
    Column("LAST WRITE", "last_time"),
    Column("TRANSACTION FROM", "transaction_start"),
    Column("COORDINATOR EPOCH", "coordinator_epoch", is_wide=True),
)


@click.group(cls=Noun)
def producer() -> None:
    """Show the producers that write to partitions."""


@producer.command("list", example="penstock producer list events")
@click.argument(
    "topics", metavar="TOPIC[:PARTITION,...]...", nargs=-1, required=True, type=TOPIC_NAME
)
@remote
def list_(remote: Remote, topics: tuple[str, ...]) -> None:
    """List idempotent and transactional producers, as the leaders of partitions know them."""

    async def work(client: Client) -> list[dict[str, Any]]:
        found = await describe_producers(client, await chosen_partitions(client, topics))
        return [row(tp, each) for tp, active in sorted(found.items()) for each in active]

    print_rows(remote.run(work), COLUMNS)


def row(tp: TopicPartition, each: ActiveProducer) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "producer_id": each.id,
        "producer_epoch": each.epoch,
        "last_sequence": each.last_sequence,
        "last_timestamp_ms": each.last_timestamp,
        "last_time": iso_time(each.last_timestamp),
        "coordinator_epoch": each.coordinator_epoch if each.coordinator_epoch >= 0 else None,
        "transaction_start": each.transaction_start if each.transaction_start >= 0 else None,
    }
