"""`penstock topic`: lists, describes, creates, alters and deletes topics."""

from collections.abc import Awaitable, Callable, Sequence

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code
from penstock.cli.frame.command import Noun
from penstock.cli.output import FORMAT, print_json, print_table
from penstock.cli.ranges import PARTITIONS, REPLICAS
from penstock.cli.remote import Remote, remote
from penstock.cli.topic_configs import CONFIGS, pairs
from penstock.cli.topic_view import (
    described_topic,
    description,
    print_description,
    replication_factor,
    summary,
)
from penstock.client.admin import (
    BROKER_DEFAULT,
    NewTopic,
    create_partitions,
    create_topic,
    delete_topic,
    list_topics,
)
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import KafkaError
from penstock.types import uuid_text

NAMES = click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
VALIDATE_ONLY = click.option(
    "--validate-only", is_flag=True, help="Let the broker check it, and change nothing."
)


@click.group(cls=Noun)
def topic() -> None:
    """List, describe, create, alter and delete topics."""


@topic.command("list", example="penstock topic list")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@FORMAT
@remote
def list_(remote: Remote, exclude_internal: bool, output: str) -> None:
    """List topics by name."""
    found = remote.run(list_topics)
    shown = [each for each in found if not (exclude_internal and each.is_internal)]
    if output == "json":
        for each in shown:
            print_json(summary(each))
        return
    print_table(
        ("NAME", "PARTITIONS", "REPLICAS"),
        [(each.name, len(each.partitions), replication_factor(each)) for each in shown],
    )


@topic.command("describe", example="penstock topic describe events")
@NAMES
@click.option("--all-configs", is_flag=True, help="Also show settings with default values.")
@FORMAT
@remote
def describe(remote: Remote, names: tuple[str, ...], all_configs: bool, output: str) -> None:
    """Show settings, leaders, replicas and offsets of topics."""

    async def show(client: Client, name: str) -> None:
        described = await described_topic(client, name, all_configs=all_configs)
        if output == "json":
            print_json(description(described))
        else:
            print_description(described)

    for_each(remote, names, show)


@topic.command(
    "create", example="penstock topic create events --partitions 3 --config retention.ms=86400000"
)
@NAMES
@click.option(
    "-p", "--partitions", type=PARTITIONS, help="Number of partitions. [the broker's default]"
)
@click.option("-r", "--replicas", type=REPLICAS, help="Replication factor. [the broker's default]")
@CONFIGS
@VALIDATE_ONLY
@FORMAT
@remote
def create(
    remote: Remote,
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    validate_only: bool,
    output: str,
) -> None:
    """Create topics."""
    settings = pairs(configs)

    async def make(client: Client, name: str) -> None:
        new = NewTopic(
            name=name,
            partitions=partitions or BROKER_DEFAULT,
            replication_factor=replicas or BROKER_DEFAULT,
            configs=settings,
        )
        made = await create_topic(client, new, validate_only=validate_only)
        if output == "json":
            print_json(
                {
                    "name": name,
                    "id": uuid_text(made.id),
                    "partition_count": made.partitions,
                    "replication_factor": made.replication_factor,
                    "created": not validate_only,
                }
            )
        else:
            click.echo(f"{name} can be created" if validate_only else f"created {name}")

    for_each(remote, names, make)


@topic.command("alter", example="penstock topic alter events --config retention.ms=86400000")
@NAMES
@click.option("-p", "--partitions", type=PARTITIONS, help="Increase to this number.")
@CONFIGS
@click.option(
    "--unset", multiple=True, metavar="NAME", help="Reset this setting to its default; repeatable."
)
@VALIDATE_ONLY
@FORMAT
@remote
def alter(
    remote: Remote,
    names: tuple[str, ...],
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

    for_each(remote, names, change)


@topic.command("delete", example="penstock topic delete events")
@NAMES
@FORMAT
@remote
def delete(remote: Remote, names: tuple[str, ...], output: str) -> None:
    """Delete topics with all their records."""

    async def remove(client: Client, name: str) -> None:
        await delete_topic(client, name)
        if output == "json":
            print_json({"name": name, "deleted": True})
        else:
            click.echo(f"deleted {name}")

    for_each(remote, names, remove)


def for_each(
    remote: Remote, names: Sequence[str], work: Callable[[Client, str], Awaitable[None]]
) -> None:
    """Do it for every topic, even if others fail; then raise the errors."""

    async def all_of_them(client: Client) -> list[KafkaError]:
        errors = []
        for name in names:
            try:
                await work(client, name)
            except KafkaError as error:
                if exit_code(error) is ExitCode.UNREACHABLE:
                    raise  # the other topics would fail too
                errors.append(error)
        return errors

    errors = remote.run(all_of_them)
    if errors:
        raise SomeFailed(errors, len(names))
