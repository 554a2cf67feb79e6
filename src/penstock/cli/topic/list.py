"""`penstock topic list`."""

from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, human_bytes, print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import matching
from penstock.cli.topic.condition import Condition, condition_of, conditions, min_isrs
from penstock.cli.topic.summary import summary
from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.metadata import TopicMetadata

COLUMNS = (
    Column("NAME", "name"),
    Column("PARTITIONS", "partition_count"),
    Column("REPLICAS", "replication_factor"),
)
SIZE = Column("SIZE", "size_bytes", human_bytes)
RECORDS, LAG = Column("RECORDS", "records"), Column("LAG", "lag")
WIDE = (Column("INTERNAL", "internal", is_wide=True), Column("ID", "id", is_wide=True))


@click.command(
    "list",
    cls=Verb,
    example=["penstock topic list", "penstock topic list 'ord.*' --size --records --lag"],
)
@click.argument("patterns", metavar="[REGEX]...", nargs=-1, type=TOPIC_NAME)
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option("--with-overrides", is_flag=True, help="Only topics with settings of their own.")
@conditions
@click.option("--size", is_flag=True, help="Show the bytes of all replicas on disk.")
@click.option(
    "--records", is_flag=True, help="Show the number of offsets between beginning and end."
)
@click.option("--lag", is_flag=True, help="Show the records that groups have not read, summed up.")
@remote
def list_(
    remote: Remote,
    patterns: tuple[str, ...],
    exclude_internal: bool,
    with_overrides: bool,
    size: bool,
    records: bool,
    lag: bool,
    **given: Any,
) -> None:
    """List topics by name, or those that a regular expression matches."""
    condition = condition_of(given)

    async def work(client: Client) -> list[dict[str, Any]]:
        found = await list_topics(client)
        if patterns:
            wanted = set(matching(patterns, [each.name for each in found]))
            found = [each for each in found if each.name in wanted]
        if exclude_internal:
            found = [each for each in found if not each.is_internal]
        if condition:
            found = await meeting(client, found, condition)
        if with_overrides:
            found = await overriding(client, found)
        rows = [summary(each) for each in found]
        if size or records or lag:
            from penstock.cli.topic.usage import add_usage  # late: imports more of the client

            await add_usage(client, found, rows, size=size, records=records, lag=lag)
        return rows

    asked = ((SIZE, size), (RECORDS, records), (LAG, lag))
    more = [column for column, is_asked in asked if is_asked]
    print_rows(remote.run(work), (*COLUMNS, *more, *WIDE))


async def meeting(
    client: Client, topics: list[TopicMetadata], condition: Condition
) -> list[TopicMetadata]:
    """Topics with a partition that meets the condition."""
    least = await min_isrs(
        client, [each.name for each in topics] if condition.needs_min_isr else []
    )
    return [
        topic
        for topic in topics
        if any(
            condition.meets(each, least.get(topic.name, 1)) for each in topic.partitions.values()
        )
    ]


async def overriding(client: Client, topics: list[TopicMetadata]) -> list[TopicMetadata]:
    from penstock.client.configs import overrides  # late: imports more of the client

    return [each for each in topics if await overrides(client, each.name)]
