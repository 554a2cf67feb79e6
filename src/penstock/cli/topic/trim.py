"""`penstock topic trim`."""

from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import confirm, note
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import print_rows
from penstock.cli.position import Position, PositionType, offsets_at
from penstock.cli.ranges import PARTITION
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.trimming import COLUMNS, trimmed
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.listing import IsolationLevel
from penstock.errors import ConfigError
from penstock.types import TopicPartition


@click.command(
    "trim",
    cls=Verb,
    example=[
        "penstock topic trim events --before @-7d --dry-run",
        "penstock topic trim events --before 1 --partition 0",
    ],
)
@click.argument("name", metavar="TOPIC", type=TOPIC_NAME)
@click.option(
    "--before",
    "position",
    type=PositionType(),
    required=True,
    help="The first record to keep: N, +N from the beginning, -N from the end, end, or @TIME.",
)
@click.option(
    "-p", "--partition", "indexes", multiple=True, type=PARTITION, help="Only this; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@remote
def trim(
    remote: Remote,
    name: str,
    position: Position,
    indexes: tuple[int, ...],
    dry_run: bool,
) -> None:
    """Delete the records of a topic before a position, for good."""
    if not dry_run:
        confirm(f"Delete the beginning of {name}?")

    async def work(client: Client) -> list[dict[str, Any]]:
        (found,) = await describe_topics(client, [name])
        if unknown := [each for each in indexes if each not in found.partitions]:
            last = len(found.partitions) - 1
            raise ConfigError(f"--partition {unknown[0]}: {name} has partitions 0 to {last}")
        partitions = [TopicPartition(name, index) for index in indexes or sorted(found.partitions)]
        before = await offsets_at(client, partitions, position, IsolationLevel.READ_UNCOMMITTED)
        return await trimmed(client, before, execute=not dry_run)

    print_rows(remote.run(work), COLUMNS)
    if dry_run:
        note("nothing was deleted; repeat without --dry-run")
