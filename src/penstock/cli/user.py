"""`penstock user`: SCRAM users."""

import secrets
from typing import Any

import click

from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import confirm
from penstock.cli.output import FORMAT, Column, is_data, print_json, print_rows
from penstock.cli.password import ask_password
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.scram_credentials import (
    NewScramCredential,
    alter_scram_credentials,
    describe_scram_users,
)
from penstock.errors import ConfigError
from penstock.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SALT_BYTES,
    ScramMechanism,
    salted,
)

MECHANISMS = {each.mechanism: each for each in ScramMechanism}
NAME = click.argument("name", metavar="USER")
MECHANISM = click.option(
    "--mechanism",
    type=click.Choice(list(MECHANISMS)),
    default="SCRAM-SHA-512",
    show_default=True,
    help="How the user logs in.",
)


@click.group(cls=Noun)
def user() -> None:
    """List, create, change and delete users that log in by SCRAM."""


def rows(found: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    return [{"user": name, "mechanisms": found[name]} for name in sorted(found)]


async def known_user(client: Client, name: str) -> dict[str, dict[str, int]]:
    found = await describe_scram_users(client, [name])
    if not found:
        raise ConfigError(f"no user {name} logs in by SCRAM")
    return found


def mechanisms_text(found: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count} iterations)" for name, count in found.items())


COLUMNS = (Column("USER", "user"), Column("MECHANISMS", "mechanisms", mechanisms_text))


@user.command("list", example="penstock user list")
@FORMAT
@remote
def list_(remote: Remote, output: str) -> None:
    """List users by name."""
    del output
    print_rows(rows(remote.run(describe_scram_users)), COLUMNS)


@user.command("describe", example="penstock user describe bob")
@NAME
@FORMAT
@remote
def describe(remote: Remote, name: str, output: str) -> None:
    """Show how a user can log in."""
    del output
    print_rows(rows(remote.run(lambda client: known_user(client, name))), COLUMNS)


@user.command(
    "create", example=["penstock user create bob", "penstock user create bob < password.txt"]
)
@NAME
@MECHANISM
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
    default=8192,
    show_default=True,
    help="How often the password is hashed.",
)
@FORMAT
@remote
def create(remote: Remote, name: str, mechanism: str, iterations: int, output: str) -> None:
    """Create a user, or set a new password, read from a prompt or standard input.

    The password never leaves this machine: the broker gets it salted and hashed.
    """
    del output
    password = ask_password(name)
    salt = secrets.token_bytes(SALT_BYTES)
    key = salted(MECHANISMS[mechanism], password, salt, iterations)
    new = NewScramCredential(iterations, salt, key)
    remote.run(lambda client: alter_scram_credentials(client, name, {mechanism: new}))
    if is_data():
        print_json({"user": name, "mechanism": mechanism, "iterations": iterations})
    else:
        click.echo(f"{name} can log in by {mechanism}")


@user.command("delete", example="penstock user delete bob --yes")
@NAME
@FORMAT
@remote
def delete(remote: Remote, name: str, output: str) -> None:
    """Delete all credentials of a user, who then cannot log in any more."""
    del output
    confirm(f"Delete user {name}?")

    async def work(client: Client) -> None:
        (known,) = (await known_user(client, name)).values()
        await alter_scram_credentials(client, name, dict.fromkeys(known))

    remote.run(work)
    if is_data():
        print_json({"user": name, "deleted": True})
    else:
        click.echo(f"deleted {name}")
