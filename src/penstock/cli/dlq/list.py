"""`penstock dlq list`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.dlq.view import COLUMNS, letter_options, letter_row
from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, known_routes
from penstock.cli.selection import chosen_records
from penstock.client.cluster import Client
from penstock.retry.letters import find_letter_topics, open_letters, read_letters

TOPIC_COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PARTITIONS", "partitions"),
    Column("RECORDS", "records"),
)


@click.command(
    "list",
    cls=Verb,
    example=["penstock dlq list", "penstock dlq list orders-again.dlq --error timeout"],
)
@click.argument("topic", required=False, type=TOPIC_NAME)
@letter_options
@click.option("-n", "--count", type=click.IntRange(min=1), help="At most this many. [all]")
@click.option("--all", "done", is_flag=True, help="Also those that were redriven or purged.")
@ROUTES
@remote
def list_(
    remote: Remote,
    topic: str | None,
    count: int | None,
    done: bool,
    route_file: Path | None,
    **chosen: Any,
) -> None:
    """List the dead letters of TOPIC, by partition and offset.

    Without TOPIC: the topics of dead letters, by the settings of delay and retry topics, or with
    names that end in `.dlq`. RECORDS counts offsets: also letters that were redriven.
    """
    if topic is None:
        print_rows(remote.run(lambda client: topics(client, route_file)), TOPIC_COLUMNS)
        return
    records = chosen_records(**chosen)

    async def work(client: Client) -> list[dict[str, Any]]:
        letters = await open_letters(client, topic)
        rows: list[dict[str, Any]] = []
        async for each in read_letters(client, letters, records.selection, done=done):
            rows.append(letter_row(each, letters.outcome(each.partition, each.record.offset)))
            if len(rows) == count:
                break
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    print_rows(remote.run(work), COLUMNS)
    records.warn()


async def topics(client: Client, route_file: Path | None) -> list[dict[str, Any]]:
    rows = []
    for name in await find_letter_topics(client, await known_routes(client, route_file)):
        letters = await open_letters(client, name)
        rows.append({"topic": name, "partitions": len(letters.keys), "records": letters.size})
    return rows
