"""`penstock config`: settings of topics, brokers and groups; and of a file, before it is used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from penstock.cli.config_view import ENTRIES, entries
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Noun
from penstock.cli.known_broker import known
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, Column, is_data, print_json, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.configs import ConfigEntry, Resource, alter_configs, describe_configs
from penstock.client.groups import list_groups
from penstock.config.resource_type import ConfigResourceType
from penstock.counted import counted
from penstock.errors import ConfigError

TYPES = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "group": ConfigResourceType.GROUP,
}
KIND = click.argument("kind", metavar="topic|broker|group", type=click.Choice(list(TYPES)))
NAME = click.argument("name", type=TOPIC_NAME)
ALL_BROKERS = "default"
"""Names the default of all brokers: settings of the whole cluster, as in kafka-configs."""


@click.group(cls=Noun)
def config() -> None:
    """Show, compare and change settings of topics, brokers and groups; check a file of settings.

    The broker `default` stands for all brokers.
    """


def resource_of(kind: str, name: str) -> Resource:
    if kind == "broker":
        name = "" if name == ALL_BROKERS else name
        if name and not name.isdigit():
            raise ConfigError(f"broker {name!r} is neither a number nor {ALL_BROKERS!r}")
    return Resource(TYPES[kind], name)


async def existing(client: Client, kind: str, name: str) -> Resource:
    """The resource. Only a broker itself can report its settings, so it must be up."""
    resource = resource_of(kind, name)
    if kind == "broker" and resource.name:
        known(await describe_cluster(client), int(resource.name))
    return resource


@config.command("list", example="penstock config list")
@remote
def list_(remote: Remote) -> None:
    """List everything that has settings other than the default, and how many."""

    async def work(client: Client) -> list[dict[str, Any]]:
        rows = []
        names = [("broker", str(each)) for each in (await describe_cluster(client)).brokers]
        names += [("topic", each.name) for each in await list_topics(client)]
        names += [("group", each.id) for each in await list_groups(client)]
        for kind, name in [("broker", ALL_BROKERS), *sorted(names)]:
            found = await describe_configs(client, resource_of(kind, name))
            changed = entries(found.values(), is_all=False)
            if changed:
                own = [each["name"] for each in changed]
                rows.append({"type": kind, "name": name, "count": len(own), "settings": own})
        return rows

    print_rows(
        remote.run(work),
        (
            Column("TYPE", "type"),
            Column("NAME", "name"),
            Column("COUNT", "count"),
            Column("SETTINGS", "settings", is_wide=True),
        ),
    )


@config.command(
    "describe",
    example=[
        "penstock config describe topic events --all",
        "penstock config describe broker 1 --format wide",
    ],
)
@KIND
@NAME
@click.argument("settings", metavar="[SETTING]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Also settings with default values.")
@remote
def describe(remote: Remote, kind: str, name: str, settings: tuple[str, ...], is_all: bool) -> None:
    """Show settings, their sources and, with --format wide, what they mean."""
    found = remote.run(described(kind, name))
    if unknown := [each for each in settings if each not in found]:
        from penstock.cli.frame.command import did_you_mean  # late: only needed for a mistake

        hint = did_you_mean(unknown[0], list(found))
        raise ConfigError(f"{kind} {name} has no setting {unknown[0]}.{hint}")
    chosen = [found[each] for each in settings] or list(found.values())
    print_rows(entries(chosen, is_all=is_all or bool(settings)), ENTRIES)


def described(kind: str, name: str) -> Callable[[Client], Any]:
    async def work(client: Client) -> dict[str, ConfigEntry]:
        resource = await existing(client, kind, name)
        return await describe_configs(client, resource, documentation=True)

    return work


@config.command("set", example="penstock config set topic events retention.ms=86400000")
@KIND
@NAME
@click.argument("pairs", metavar="SETTING=VALUE...", nargs=-1, required=True)
@click.option("--validate-only", is_flag=True, help="Let the broker check it; change nothing.")
@FORMAT
@remote
def set_(
    remote: Remote,
    kind: str,
    name: str,
    pairs: tuple[str, ...],
    validate_only: bool,
    output: str,
) -> None:
    """Change settings while brokers run."""
    changes: dict[str, str | None] = {}
    for pair in pairs:
        setting, equals, value = pair.partition("=")
        if not equals or not setting:
            raise click.UsageError(f"{pair!r} is not SETTING=VALUE")
        changes[setting] = value
    alter(remote, kind, name, changes, validate_only=validate_only, output=output)


@config.command("unset", example="penstock config unset topic events retention.ms")
@KIND
@NAME
@click.argument("settings", metavar="SETTING...", nargs=-1, required=True)
@click.option("--validate-only", is_flag=True, help="Let the broker check it; change nothing.")
@FORMAT
@remote
def unset(
    remote: Remote,
    kind: str,
    name: str,
    settings: tuple[str, ...],
    validate_only: bool,
    output: str,
) -> None:
    """Reset settings to their defaults."""
    changes: dict[str, str | None] = dict.fromkeys(settings)
    alter(remote, kind, name, changes, validate_only=validate_only, output=output)


def alter(
    remote: Remote,
    kind: str,
    name: str,
    changes: dict[str, str | None],
    *,
    validate_only: bool,
    output: str,
) -> None:

    async def work(client: Client) -> None:
        resource = await existing(client, kind, name)
        await alter_configs(client, resource, changes, validate_only=validate_only)

    remote.run(work)
    if output == "json":
        print_json({"type": kind, "name": name, "changes": changes, "altered": not validate_only})
    else:
        click.echo(f"{kind} {name} " + ("can be altered" if validate_only else "is altered"))


@config.command("diff", example="penstock config diff topic events other")
@KIND
@NAME
@click.argument("other", type=TOPIC_NAME)
@remote
def diff(remote: Remote, kind: str, name: str, other: str) -> None:
    """Show the settings in which two topics, brokers or groups differ."""

    async def work(client: Client) -> tuple[dict[str, ConfigEntry], dict[str, ConfigEntry]]:
        return (
            await describe_configs(client, await existing(client, kind, name)),
            await describe_configs(client, await existing(client, kind, other)),
        )

    rows = differences(*remote.run(work))
    print_rows(
        rows, (Column("NAME", "name"), Column(name.upper(), "a"), Column(other.upper(), "b"))
    )


def differences(a: dict[str, ConfigEntry], b: dict[str, ConfigEntry]) -> list[dict[str, Any]]:
    def value(found: dict[str, ConfigEntry], name: str) -> str | None:
        return found[name].value if name in found else None

    return [
        {"name": name, "a": value(a, name), "b": value(b, name)}
        for name in sorted({*a, *b})
        if value(a, name) != value(b, name)
    ]


@config.command("check", example="penstock config check server.properties")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(file: Path) -> None:
    """Check a broker's file of settings without starting it. The exit code is 1 if it would fail.

    Unknown names are warnings, with the nearest known one.
    """
    from penstock.config.sources import SettingSource, resolve  # late: imports all settings

    problem: str | None = None
    warnings: tuple[str, ...] = ()
    count = 0
    try:
        resolved = resolve(file=file)
        warnings = resolved.warnings
        count = sum(each.source is SettingSource.FILE for each in resolved.given.values())
    except ConfigError as error:
        problem = str(error)
    if is_data():
        row = {"file": str(file), "settings": count, "error": problem, "warnings": list(warnings)}
        print_json(row)
    else:
        for each in warnings:
            click.echo(f"warning: {each}")
        click.echo(
            f"error: {problem}"
            if problem
            else f"{file}: {counted(count, 'setting is', 'settings are')} valid"
        )
    if problem is not None:
        raise SystemExit(ExitCode.FAILED)
