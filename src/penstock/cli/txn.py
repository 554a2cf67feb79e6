"""`penstock txn`: transactions, including hanging ones."""

from typing import Any

import click

from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import confirm
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, Column, iso_time, print_json, print_rows
from penstock.cli.producer import COLUMNS as PRODUCERS
from penstock.cli.producer import row as producer_row
from penstock.cli.ranges import PARTITION, SECONDS
from penstock.cli.remote import Remote, remote
from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.hanging import find_hanging
from penstock.client.metadata import NO_LEADER
from penstock.client.partition_scope import chosen_partitions
from penstock.client.producers import ActiveProducer, describe_producers
from penstock.client.transaction_admin import (
    TransactionDescription,
    abort_hanging,
    describe_transaction,
    list_transactions,
)
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.types import TopicPartition


@click.group(cls=Noun)
def txn() -> None:
    """List and describe transactions; find and abort those that hang."""


@txn.command("list", example="penstock txn list --state Ongoing")
@click.option(
    "--state", "states", multiple=True, help="Only transactions in this state; repeatable."
)
@click.option("--longer-than", type=SECONDS, metavar="SECONDS", help="Only those open for longer.")
@remote
def list_(remote: Remote, states: tuple[str, ...], longer_than: float | None) -> None:
    """List transactional ids, by name."""
    age_ms = -1 if longer_than is None else round(longer_than * 1000)
    found = remote.run(
        lambda client: list_transactions(client, states=states, running_longer_than_ms=age_ms)
    )
    rows = [
        {
            "id": each.id,
            "coordinator": each.coordinator,
            "producer_id": each.producer_id,
            "state": each.state,
        }
        for each in found
    ]
    columns = ("ID", "id"), ("COORDINATOR", "coordinator"), ("PRODUCER", "producer_id")
    print_rows(rows, [*(Column(*each) for each in columns), Column("STATE", "state")])


@txn.command("describe", example="penstock txn describe payments-1")
@click.argument("name", metavar="ID")
@FORMAT
@remote
def describe(remote: Remote, name: str, output: str) -> None:
    """Show a transactional id: state, producer, timeout, partitions."""
    row = described(remote.run(lambda client: describe_transaction(client, name)))
    if output == "json":
        print_json(row)
        return
    click.echo(f"{row['id']}: {row['state']}, producer {row['producer_id']}")
    click.echo(f"epoch {row['producer_epoch']}, coordinator broker {row['coordinator']}")
    click.echo(f"timeout {row['timeout_ms']} ms, started {row['started'] or '-'}")
    click.echo(f"partitions {', '.join(row['partitions']) or '-'}")


def described(found: TransactionDescription) -> dict[str, Any]:
    return {
        "id": found.id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator,
        "timeout_ms": found.timeout_ms,
        "start_ms": found.start_ms if found.start_ms >= 0 else None,
        "started": iso_time(found.start_ms),
        "partitions": [f"{topic}-{index}" for topic, index in found.partitions],
    }


@txn.command("hanging", example="penstock txn hanging events")
@click.argument("topics", metavar="[TOPIC[:PARTITION,...]]...", nargs=-1, type=TOPIC_NAME)
@click.option(
    "--older-than",
    type=SECONDS,
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Only transactions without a write for this long; at least transaction.max.timeout.ms "
    "of the brokers.",
)
@remote
def hanging(remote: Remote, topics: tuple[str, ...], older_than: float) -> None:
    """Find transactions that no coordinator will end: read_committed consumers wait for them."""

    async def work(client: Client) -> list[dict[str, Any]]:
        if topics:
            partitions = await chosen_partitions(client, topics)
        else:
            partitions = [
                TopicPartition(topic.name, each.index)
                for topic in await list_topics(client)
                for each in topic.partitions.values()
                if each.leader != NO_LEADER
            ]
        found = await find_hanging(
            client,
            partitions,
            older_than_ms=round(older_than * 1000),
            now_ms=SystemClock().now_ms(),
        )
        return [producer_row(each.partition, each.producer) for each in found]

    print_rows(remote.run(work), PRODUCERS)


@txn.command("abort", example="penstock txn abort events 0 --start-offset 1 --yes")
@click.argument("topic", type=TOPIC_NAME)
@click.argument("partition", type=PARTITION)
@click.option(
    "--start-offset",
    type=click.IntRange(min=0),
    required=True,
    help="First offset of the transaction, as `penstock txn hanging` shows it.",
)
@FORMAT
@remote
def abort(remote: Remote, topic: str, partition: int, start_offset: int, output: str) -> None:
    """Abort a hanging transaction by writing a marker to its partition."""
    confirm(f"Abort the transaction of {topic}-{partition} that begins at {start_offset}?")
    tp = TopicPartition(topic, partition)

    async def work(client: Client) -> ActiveProducer:
        (wanted,) = await chosen_partitions(client, [f"{topic}:{partition}"])
        for each in (await describe_producers(client, [wanted]))[wanted]:
            if each.transaction_start == start_offset:
                await abort_hanging(client, wanted, each)
                return each
        raise ConfigError(f"{topic}-{partition} has no open transaction from {start_offset} on")

    found = remote.run(work)
    if output == "json":
        print_json({**producer_row(tp, found), "aborted": True})
    else:
        click.echo(f"aborted the transaction of producer {found.id} in {topic}-{partition}")
