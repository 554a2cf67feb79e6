"""`penstock topic alter`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, print_json
from penstock.cli.ranges import PARTITIONS
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, REGEX, VALIDATE_ONLY, chosen, for_each
from penstock.cli.topic_configs import CONFIGS, pairs
from penstock.client.admin import create_partitions
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs
from penstock.config.resource_type import ConfigResourceType


@click.command(
    "alter", cls=Verb, example="penstock topic alter events --config retention.ms=86400000"
)
@NAMES
@REGEX
@click.option("-p", "--partitions", type=PARTITIONS, help="Increase to this number.")
@CONFIGS
@click.option(
    "--unset",
    "--delete-config",
    "unset",
    multiple=True,
    metavar="NAME",
    help="Reset this setting to its default; repeatable.",
)
@VALIDATE_ONLY
@FORMAT
@remote
def alter(
    remote: Remote,
    names: tuple[str, ...],
    regex: bool,
    partitions: int | None,
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    validate_only: bool,
    output: str,
) -> None:
    """Change settings of topics, or add partitions."""
    settings = pairs(configs)
    if both := [name for name in unset if name in settings]:
        raise click.UsageError(f"--config and --unset both name {both[0]}")
    changes: dict[str, str | None] = {**settings, **dict.fromkeys(unset)}
    if not changes and partitions is None:
        raise click.UsageError("nothing to alter: give --partitions, --config or --unset")

    async def change(client: Client, name: str) -> None:
        # Two requests: do not send the first if the second would fail.
        if changes and partitions is not None and not validate_only:
            await create_partitions(client, name, partitions, validate_only=True)
        if changes:
            resource = Resource(ConfigResourceType.TOPIC, name)
            await alter_configs(client, resource, changes, validate_only=validate_only)
        if partitions is not None:
            await create_partitions(client, name, partitions, validate_only=validate_only)
        if output == "json":
            print_json({"name": name, "altered": not validate_only})
        else:
            click.echo(f"{name} can be altered" if validate_only else f"altered {name}")

    for_each(remote, chosen(remote, names, regex=regex), change)
