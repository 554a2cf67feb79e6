"""`penstock group delete`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.group.chosen import GROUPS
from penstock.cli.output import FORMAT, print_json
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import confirm_for, for_each, matching
from penstock.client.cluster import Client
from penstock.client.groups import delete_group, list_groups
from penstock.errors import ConfigError


@click.command(
    "delete",
    cls=Verb,
    example=["penstock group delete old", "penstock group delete --regex 'test-.*' --yes"],
)
@GROUPS
@click.option("--regex", is_flag=True, help="Each GROUP is a regular expression for whole names.")
@FORMAT
@remote
def delete(remote: Remote, names: tuple[str, ...], regex: bool, output: str) -> None:
    """Delete groups without members, with their offsets."""
    wanted = list(dict.fromkeys(names))
    if regex:
        wanted = matching(names, [each.id for each in remote.run(list_groups)])
        if not wanted:
            raise ConfigError(f"no group matches {' or '.join(names)}")
    confirm_for(wanted, "Delete, with all offsets,")

    async def remove(client: Client, name: str) -> None:
        await delete_group(client, name)
        if output == "json":
            print_json({"name": name, "deleted": True})
        else:
            click.echo(f"deleted {name}")

    for_each(remote, wanted, remove)
