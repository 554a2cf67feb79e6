"""`penstock profile`: named client settings for `--profile`."""

import os
from typing import Any

import click

from penstock.cli.frame.client_settings import from_pairs
from penstock.cli.frame.command import Noun
from penstock.cli.frame.profile_file import (
    BUILT_IN,
    Profiles,
    profiles_path,
    read_profiles,
    write_profiles,
)
from penstock.cli.frame.terminal import confirm
from penstock.cli.output import Column, is_data, print_json, print_result, print_rows
from penstock.cli.redaction import redacted_settings
from penstock.errors import ConfigError

NAME = click.argument("name")


@click.group(cls=Noun)
def profile() -> None:
    """Keep client settings under a name, for --profile; `classic` is built in."""


@profile.command("list", example="penstock profile list")
def list_() -> None:
    """List profiles."""
    known = read_profiles(profiles_path(os.environ))
    print_rows(
        listed(known, os.environ.get("PENSTOCK_PROFILE")),
        (
            Column("NAME", "name"),
            Column("IN USE", "current"),
            Column("BOOTSTRAP", "bootstrap"),
            Column("SETTINGS", "settings", is_wide=True),
            Column("BUILT IN", "built_in", is_wide=True),
        ),
    )


def listed(known: Profiles, chosen: str | None) -> list[dict[str, Any]]:
    current = known.current if chosen is None else chosen
    return [
        {
            "name": name,
            "current": name == current,
            "bootstrap": known.settings(name).get("bootstrap.servers"),
            "settings": len(known.settings(name)),
            "built_in": name in BUILT_IN and name not in known.own,
        }
        for name in known.names()
    ]


@profile.command("show", example="penstock profile show classic")
@NAME
def show(name: str) -> None:
    """Show the settings of a profile; secrets are hidden."""
    settings = redacted_settings(read_profiles(profiles_path(os.environ)).settings(name))
    if is_data():
        print_json({"name": name, "settings": settings})
        return
    for key, text in settings.items():
        click.echo(f"{key}={text}")


@profile.command(
    "create",
    example=(
        "penstock profile create staging -X bootstrap.servers=kafka1:9092 -X acks=all",
        "penstock profile create staging -X security.protocol=SSL --use",
    ),
)
@NAME
@click.option(
    "-X", "properties", multiple=True, metavar="NAME=VALUE", help="A setting; repeatable."
)
@click.option("--use", "is_used", is_flag=True, help="Use it from now on.")
def create(name: str, properties: tuple[str, ...], is_used: bool) -> None:
    """Create a profile, or replace one."""
    if not name.strip() or "\n" in name:
        raise ConfigError("the name of a profile must not be empty")
    path = profiles_path(os.environ)
    changed = read_profiles(path).with_profile(name, dict(from_pairs(properties)))
    write_profiles(path, changed.using(name) if is_used else changed)
    print_result(f"created {name} in {path}", {"name": name, "created": True, "file": str(path)})


@profile.command("use", example="penstock profile use classic")
@click.argument("name", required=False)
@click.option("--none", "is_none", is_flag=True, help="Use none.")
def use(name: str | None, is_none: bool) -> None:
    """Use a profile in all commands that name none."""
    if (name is None) != is_none:
        raise click.UsageError("name a profile, or give --none")
    path = profiles_path(os.environ)
    write_profiles(path, read_profiles(path).using(name))
    print_result(f"using {name or 'no profile'}", {"name": name, "current": name is not None})


@profile.command("delete", example="penstock profile delete staging")
@NAME
def delete(name: str) -> None:
    """Delete a profile."""
    path = profiles_path(os.environ)
    left = read_profiles(path).without(name)
    confirm(f"Delete profile {name}?")
    write_profiles(path, left)
    print_result(f"deleted {name}", {"name": name, "deleted": True})
