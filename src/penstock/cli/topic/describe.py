"""`penstock topic describe`."""

from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import REGEX, chosen, for_each
from penstock.cli.topic.condition import condition_of, conditions, min_isrs
from penstock.cli.topic.view import described_topic, description, print_description
from penstock.client.admin import list_topics
from penstock.client.cluster import Client


@click.command(
    "describe",
    cls=Verb,
    example=["penstock topic describe events", "penstock topic describe --under-replicated"],
)
@click.argument("names", metavar="[TOPIC]...", nargs=-1, type=TOPIC_NAME)
@REGEX
@click.option("--all-configs", is_flag=True, help="Also show settings with default values.")
@conditions
@FORMAT
@remote
def describe(
    remote: Remote,
    names: tuple[str, ...],
    regex: bool,
    all_configs: bool,
    output: str,
    **given: Any,
) -> None:
    """Show settings, leaders, replicas and offsets of topics.

    All topics are shown if none is named; with --under-replicated and similar options, only the
    partitions that match, and their topics.
    """
    condition = condition_of(given)
    wanted = chosen(remote, names, regex=regex)
    if not names:
        wanted = [each.name for each in remote.run(list_topics)]

    async def show(client: Client, name: str) -> None:
        least = await min_isrs(client, [name] if condition.needs_min_isr else [])
        described = await described_topic(
            client,
            name,
            all_configs=all_configs,
            wanted=lambda each: condition.meets(each, least.get(name, 1)),
        )
        if condition and not described.topic.partitions:
            return
        if output == "json":
            print_json(description(described))
        else:
            print_description(described)

    for_each(remote, wanted, show)
