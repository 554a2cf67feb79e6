"""`penstock quota`: quotas of users, client ids and IP addresses."""

from typing import Any

import click

from penstock.cli.frame.command import Noun
from penstock.cli.output import FORMAT, Column, is_data, print_json, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.quotas import QuotaEntity, alter_quotas, describe_quotas
from penstock.errors import ConfigError

KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
ANY = "<default>"
USER = click.option(
    "--user", metavar="USER", help=f"A user; {ANY}: all users without quotas of their own."
)
CLIENT = click.option("--client-id", metavar="ID", help=f"A client id, or {ANY}.")
IP = click.option("--ip", metavar="ADDRESS", help=f"An address, or {ANY}.")


@click.group(cls=Noun)
def quota() -> None:
    """List, describe, set and unset quotas of clients."""


def entity(user: str | None, client_id: str | None, ip: str | None) -> QuotaEntity:
    given = {"user": user, "client-id": client_id, "ip": ip}
    parts = {
        kind: None if name == ANY else name for kind, name in given.items() if name is not None
    }
    if not parts:
        raise click.UsageError("say whose quota: --user, --client-id, both, or --ip")
    if "ip" in parts and len(parts) > 1:
        raise click.UsageError("--ip excludes --user and --client-id")
    return parts


def row(of: QuotaEntity, limits: dict[str, float]) -> dict[str, Any]:
    named = {kind.replace("-", "_"): name or ANY for kind, name in of.items()}
    return {"user": None, "client_id": None, "ip": None, **named, "quotas": limits}


def limits_text(limits: dict[str, float]) -> str:
    return ", ".join(f"{key}={amount(value)}" for key, value in sorted(limits.items())) or "-"


def amount(value: float) -> str:
    """The number with all its digits; whole numbers without a decimal point."""
    return str(int(value)) if value.is_integer() else repr(value)


COLUMNS = (
    Column("USER", "user"),
    Column("CLIENT ID", "client_id"),
    Column("IP", "ip"),
    Column("QUOTAS", "quotas", limits_text),
)


@quota.command("list", example="penstock quota list")
@FORMAT
@remote
def list_(remote: Remote, output: str) -> None:
    """List all quotas."""
    del output
    found = remote.run(lambda client: describe_quotas(client, {}, strict=False))
    rows = [row(*each) for each in found]
    print_rows(sorted(rows, key=lambda each: str([*each.values()][:3])), COLUMNS)


@quota.command("describe", example="penstock quota describe --user bob")
@USER
@CLIENT
@IP
@FORMAT
@remote
def describe(
    remote: Remote, user: str | None, client_id: str | None, ip: str | None, output: str
) -> None:
    """Show the quotas of exactly this user, client id, both together, or address."""
    del output
    wanted = entity(user, client_id, ip)
    found = remote.run(lambda client: describe_quotas(client, wanted))
    print_rows([row(*each) for each in found], COLUMNS)


@quota.command("set", example="penstock quota set --user bob producer_byte_rate=1048576")
@click.argument("pairs", metavar="KEY=VALUE...", nargs=-1, required=True)
@USER
@CLIENT
@IP
@FORMAT
@remote
def set_(
    remote: Remote,
    pairs: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    output: str,
) -> None:
    """Set quotas; others of the same entity stay. Keys are Kafka's."""
    del output
    change(remote, entity(user, client_id, ip), dict(map(parsed, pairs)))


def parsed(pair: str) -> tuple[str, float | None]:
    key, equals, text = pair.partition("=")
    if key not in KEYS:
        raise ConfigError(f"{key!r} is not a quota: use {', '.join(KEYS)}")
    try:
        return key, float(text)
    except ValueError:
        problem = f"{text!r} is not a number" if equals else "has no value"
        raise ConfigError(f"{key}: {problem}; write {key}=NUMBER") from None


@quota.command("unset", example="penstock quota unset --user bob producer_byte_rate")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True, type=click.Choice(KEYS))
@USER
@CLIENT
@IP
@FORMAT
@remote
def unset(
    remote: Remote,
    keys: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    output: str,
) -> None:
    """Remove quotas."""
    del output
    change(remote, entity(user, client_id, ip), dict.fromkeys(keys))


def change(remote: Remote, of: QuotaEntity, changes: dict[str, float | None]) -> None:
    remote.run(lambda client: alter_quotas(client, of, changes))
    if is_data():
        print_json({**row(of, {}), "quotas": changes})
        return
    whose = ", ".join(f"{kind} {name or ANY}" for kind, name in of.items())
    for key, value in changes.items():
        click.echo(f"{whose}: {key} " + ("removed" if value is None else f"is {amount(value)}"))
