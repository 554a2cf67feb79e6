"""`penstock token`: delegation tokens, with which a user's programs log in."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from penstock.cli.frame.command import Noun
from penstock.cli.output import Column, is_data, iso_time, print_json, print_result, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.delegation_tokens import (
    IssuedToken,
    create_token,
    expire_token,
    list_tokens,
    renew_token,
)
from penstock.errors import ConfigError
from penstock.security.principal import parse_principal

TOKEN = click.argument("token_id", metavar="TOKEN")
COLUMNS = (
    Column("ID", "id"),
    Column("OWNER", "owner"),
    Column("REQUESTER", "requester", is_wide=True),
    Column("RENEWERS", "renewers"),
    Column("ISSUED", "issued", is_wide=True),
    Column("EXPIRES", "expires"),
    Column("MAX", "max"),
)
PERIOD = click.IntRange(min=0, max=(1 << 63) - 1)


def principal(_ctx: click.Context, _option: click.Parameter, given: Any) -> Any:
    """Check that each value is of the form User:name."""
    for each in given if isinstance(given, tuple) else filter(None, [given]):
        if parse_principal(each) is None:
            raise click.BadParameter(f"{each!r} must be User:name")
    return given


@click.group(cls=Noun)
def token() -> None:
    """Create, renew, expire and list delegation tokens."""


@token.command("create", example="penstock token create --renewer User:spark")
@click.option(
    "--owner", metavar="User:NAME", callback=principal, help="Owner of the token. [yourself]"
)
@click.option(
    "--renewer",
    "renewers",
    metavar="User:NAME",
    multiple=True,
    callback=principal,
    help="Who else may renew and expire it; repeatable.",
)
@click.option(
    "--max-lifetime-ms",
    type=PERIOD,
    default=0,
    help="Lifetime in ms that no renewal can exceed. [the brokers' setting]",
)
@remote
def create(
    remote: Remote,
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime_ms: int,
) -> None:
    """Create a token, and print its id and HMAC: username and password of a SCRAM login with
    tokenauth=true. The HMAC is a secret.
    """
    made = remote.run(lambda client: create_token(client, owner, renewers, max_lifetime_ms))
    if is_data():
        print_json(row(made) | {"hmac": made.password})
    else:
        click.echo(f"id      {made.id}\nhmac    {made.password}")
        click.echo(f"owner   {made.owner}\nends    {iso_time(made.expires_ms)}")


@token.command("list", example="penstock token list")
@remote
def list_(remote: Remote) -> None:
    """List the tokens that you may see, without their HMACs."""
    print_rows(map(row, remote.run(list_tokens)), COLUMNS)


@token.command("renew", example="penstock token renew 0uTvhzlFQPq9ZI9Vuu1Q5w")
@TOKEN
@click.option("--period-ms", type=PERIOD, help="For this many ms from now. [the brokers' setting]")
@remote
def renew(remote: Remote, token_id: str, period_ms: int | None) -> None:
    """Renew a token: it expires later."""
    period_ms = -1 if period_ms is None else period_ms
    end_ms = remote.run(of_token(token_id, lambda client, h: renew_token(client, h, period_ms)))
    print_end(token_id, end_ms)


@token.command("expire", example="penstock token expire 0uTvhzlFQPq9ZI9Vuu1Q5w")
@TOKEN
@click.option("--period-ms", type=PERIOD, help="In this many ms. [at once]")
@remote
def expire(remote: Remote, token_id: str, period_ms: int | None) -> None:
    """Expire a token, at once or after a period."""
    period_ms = -1 if period_ms is None else period_ms
    end_ms = remote.run(of_token(token_id, lambda client, h: expire_token(client, h, period_ms)))
    print_end(token_id, end_ms)


def print_end(token_id: str, end_ms: int) -> None:
    end = iso_time(end_ms)
    print_result(f"token {token_id} ends {end}", {"id": token_id, "expires": end})


def of_token(
    token_id: str, work: Callable[[Client, bytes], Awaitable[int]]
) -> Callable[[Client], Awaitable[int]]:
    """Look up the token's HMAC, which brokers require, and call `work` with it."""

    async def found(client: Client) -> int:
        for each in await list_tokens(client):
            if each.id == token_id:
                return await work(client, each.hmac)
        raise ConfigError(f"there is no token {token_id}, or you may not see it")

    return found


def row(each: IssuedToken) -> dict[str, object]:
    return {
        "id": each.id,
        "owner": each.owner,
        "requester": each.requester,
        "renewers": each.renewers,
        "issued": iso_time(each.issued_ms),
        "expires": iso_time(each.expires_ms),
        "max": iso_time(each.max_ms),
    }
