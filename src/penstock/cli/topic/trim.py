"""`penstock topic trim`."""

from collections.abc import Sequence
from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import note
from penstock.cli.output import print_rows
from penstock.cli.position import PositionType
from penstock.cli.ranges import PARTITION
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, REGEX, chosen, confirm_for, for_each
from penstock.cli.topic.trimming import COLUMNS
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.listing import IsolationLevel
from penstock.client.position import Position, offsets_at
from penstock.client.trimming import trimmed
from penstock.errors import ConfigError
from penstock.types import TopicPartition


@click.command(
    "trim",
    cls=Verb,
    example=[
        "penstock topic trim events --before @-7d --dry-run",
        "penstock topic trim events --before 1 --partition 0",
        "penstock topic trim --regex 'test-.*' --before end --yes",
    ],
)
@NAMES
@REGEX
@click.option(
    "--before",
    "position",
    type=PositionType(),
    required=True,
    help="The first record to keep: N, +N from the beginning, -N from the end, end, or @TIME.",
)
@click.option(
    "-p",
    "--partition",
    "indexes",
    multiple=True,
    type=PARTITION,
    help="Only this partition; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@remote
def trim(
    remote: Remote,
    names: tuple[str, ...],
    regex: bool,
    position: Position,
    indexes: tuple[int, ...],
    dry_run: bool,
) -> None:
    """Delete the records of topics before a position, for good."""
    wanted = chosen(remote, names, regex=regex)
    if indexes:
        remote.run(lambda client: check_partitions(client, wanted, indexes))
    if not dry_run:
        confirm_for(wanted, "Delete the beginning of")
    rows: list[dict[str, Any]] = []

    async def cut(client: Client, name: str) -> None:
        (found,) = await describe_topics(client, [name])
        partitions = [TopicPartition(name, index) for index in indexes or sorted(found.partitions)]
        before = await offsets_at(client, partitions, position, IsolationLevel.READ_UNCOMMITTED)
        rows.extend(await trimmed(client, before, execute=not dry_run))

    try:
        for_each(remote, wanted, cut)
    finally:
        if rows:
            print_rows(rows, COLUMNS)
    if dry_run:
        note("nothing was deleted; repeat without --dry-run")


async def check_partitions(client: Client, names: Sequence[str], indexes: Sequence[int]) -> None:
    """Check before anything is deleted, so that a mistake in one topic leaves none half done."""
    for topic in await client.existing_topics(names):
        unknown = [each for each in indexes if each not in topic.partitions]
        # without partitions it may not be described, which is reported later
        if topic.partitions and unknown:
            last = len(topic.partitions) - 1
            raise ConfigError(f"--partition {unknown[0]}: {topic.name} has partitions 0 to {last}")
