"""`penstock group list`."""

import click
import msgspec

from penstock.cli.frame.command import Verb
from penstock.cli.group.chosen import STATE, in_states
from penstock.cli.output import Column, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.groups import list_groups


@click.command(
    "list", cls=Verb, example=["penstock group list", "penstock group list --state Stable"]
)
@STATE
@remote
def list_(remote: Remote, states: tuple[str, ...]) -> None:
    """List groups by name."""
    found = in_states(remote.run(list_groups), states)
    print_rows(
        [msgspec.to_builtins(each) for each in found],
        (
            Column("NAME", "id"),
            Column("STATE", "state"),
            Column("TYPE", "type"),
            Column("PROTOCOL", "protocol_type"),
        ),
    )
