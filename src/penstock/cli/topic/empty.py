"""`penstock topic empty`."""

from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.output import print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.topic.chosen import NAMES, REGEX, chosen, confirm_for, for_each
from penstock.cli.topic.trimming import COLUMNS
from penstock.client.cluster import Client
from penstock.client.trimming import emptied


@click.command("empty", cls=Verb, example="penstock topic empty old")
@NAMES
@REGEX
@remote
def empty(remote: Remote, names: tuple[str, ...], regex: bool) -> None:
    """Delete all records of topics. Settings stay, and offsets continue where they are."""
    wanted = chosen(remote, names, regex=regex)
    confirm_for(wanted, "Delete all records of")
    rows: list[dict[str, Any]] = []

    async def clear(client: Client, name: str) -> None:
        rows.extend(await emptied(client, name))

    try:
        for_each(remote, wanted, clear)
    finally:
        if rows:
            print_rows(rows, COLUMNS)
