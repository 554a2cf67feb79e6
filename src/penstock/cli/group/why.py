"""`penstock group why`."""

import click
import msgspec

from penstock.advice.group_lag import why as explained
from penstock.advice.group_progress import group_progress
from penstock.cli.frame.command import Verb
from penstock.cli.group.chosen import NAME
from penstock.cli.output import is_data, print_json
from penstock.cli.remote import Remote, remote


@click.command("why", cls=Verb, example="penstock group why billing")
@NAME
@click.option(
    "--seconds",
    "watched_s",
    type=click.FloatRange(0.1, 600),
    default=5.0,
    show_default=True,
    help="How long to watch the group, in seconds.",
)
@remote
def why(remote: Remote, name: str, watched_s: float) -> None:
    """Say in one sentence why a group lags, and what to do.

    Watches offsets, log ends and fetches, and asks the group's coordinator for rebalances and
    refused commits: from its HTTP server (penstock.http.listen), if that can be reached.
    """
    found = explained(remote.run(lambda client: group_progress(client, name, watched_s)))
    if is_data():
        print_json({"group": name, **msgspec.to_builtins(found)})
        return
    click.echo(found.sentence)
    if found.advice:
        click.echo(f"    to do: {found.advice}")
