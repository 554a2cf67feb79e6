"""`penstock group rebalances`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.group.chosen import NAME
from penstock.cli.group.history import show_rebalances
from penstock.cli.remote import Remote, remote


@click.command("rebalances", cls=Verb, example="penstock group rebalances billing")
@NAME
@remote
def rebalances(remote: Remote, name: str) -> None:
    """Show the last rebalances of a group: when, how long, and why."""
    show_rebalances(remote, name)
