"""`penstock topic delete`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, REGEX, chosen, confirm_for, for_each
from penstock.client.admin import delete_topic
from penstock.client.cluster import Client
from penstock.errors import ErrorCode, KafkaError


@click.command(
    "delete",
    cls=Verb,
    example=["penstock topic delete old", "penstock topic delete --regex 'test-.*' --yes"],
)
@NAMES
@REGEX
@click.option("--if-exists", is_flag=True, help="Do not fail if a topic does not exist.")
@FORMAT
@remote
def delete(
    remote: Remote, names: tuple[str, ...], regex: bool, if_exists: bool, output: str
) -> None:
    """Delete topics with all their records."""
    wanted = chosen(remote, names, regex=regex)
    confirm_for(wanted, "Delete, with all records,")

    async def remove(client: Client, name: str) -> None:
        was_there = True
        try:
            await delete_topic(client, name)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not if_exists:
                raise
            was_there = False
        if output == "json":
            print_json({"name": name, "deleted": was_there})
        else:
            click.echo(f"deleted {name}" if was_there else f"{name} does not exist")

    for_each(remote, wanted, remove)
