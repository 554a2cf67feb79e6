"""`penstock group describe`."""

import click

from penstock.cli.frame.command import Verb
from penstock.cli.group.chosen import STATE
from penstock.cli.group.history import show_rebalances
from penstock.cli.group.in_flight import show_records
from penstock.cli.group.lookup import described_groups, only_with_lag
from penstock.cli.group.view import SUMMARY, print_description, summary_row
from penstock.cli.names import GROUP_NAME
from penstock.cli.output import FORMAT, print_json, print_rows
from penstock.cli.remote import Remote, remote


@click.command(
    "describe",
    cls=Verb,
    example=[
        "penstock group describe billing",
        "penstock group describe --only-with-lag --summary",
    ],
)
@click.argument("names", metavar="[GROUP]...", nargs=-1, type=GROUP_NAME)
@click.option(
    "--only-with-lag", "lagging", is_flag=True, help="Only partitions with unread records."
)
@click.option("--summary", is_flag=True, help="One row for each group.")
@STATE
@click.option(
    "--rebalances",
    "wants_rebalances",
    is_flag=True,
    help="Show the last rebalances of a group instead, with reason and duration.",
)
@click.option(
    "--records",
    "wants_records",
    is_flag=True,
    help="Show the records that a share group has in flight instead: which member has them, and "
    "for how long.",
)
@FORMAT
@remote
def describe(
    remote: Remote,
    names: tuple[str, ...],
    lagging: bool,
    summary: bool,
    states: tuple[str, ...],
    wants_rebalances: bool,
    wants_records: bool,
    output: str,
) -> None:
    """Show members, offsets and lag of groups; all groups, if none is named.

    Lag is the number of records after the committed offset. SECONDS is how long the first of them
    has been waiting. Partitions without a member, or without a committed offset, are shown too.
    """
    if wants_rebalances:
        if len(names) != 1:
            raise click.UsageError("--rebalances is for one group")
        show_rebalances(remote, names[0])
        return
    if wants_records:
        if len(names) != 1:
            raise click.UsageError("--records is for one group")
        show_records(remote, names[0])
        return
    found = remote.run(lambda client: described_groups(client, names, states))
    if lagging:
        found = only_with_lag(found)
    if summary:
        print_rows([summary_row(*each) for each in found], SUMMARY)
        return
    for number, each in enumerate(found):
        if output == "json":
            print_json({"group": each.group, "offsets": each.rows})
        else:
            if number:
                click.echo()
            print_description(each.group, each.rows)
