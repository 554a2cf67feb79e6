"""`penstock group watch`."""

import sys
import time
from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import is_terminal
from penstock.cli.group.chosen import STATE
from penstock.cli.group.lookup import described_groups
from penstock.cli.group.view import SUMMARY, summary_row
from penstock.cli.names import GROUP_NAME
from penstock.cli.output import FORMAT, Column, iso_time, print_rows
from penstock.cli.ranges import SECONDS
from penstock.cli.remote import Remote, remote
from penstock.clock import SystemClock

CLEAR = "\x1b[H\x1b[2J"
COLUMNS = (Column("TIME", "time"), *SUMMARY, Column("PER SECOND", "change_per_second"))


@click.command("watch", cls=Verb, example="penstock group watch billing --interval 5")
@click.argument("names", metavar="[GROUP]...", nargs=-1, type=GROUP_NAME)
@STATE
@click.option(
    "-i",
    "--interval",
    type=SECONDS,
    default=2.0,
    show_default=True,
    help="Seconds between two updates.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), help="Stop after this many updates.")
@FORMAT
@remote
def watch(
    remote: Remote,
    names: tuple[str, ...],
    states: tuple[str, ...],
    interval: float,
    count: int | None,
    output: str,
) -> None:
    """Show the lag of groups, and how fast it grows, again and again until Ctrl-C."""
    before: dict[str, Any] = {}
    shown = 0
    while True:
        found = remote.run(lambda client: described_groups(client, names, states))
        now_ms = SystemClock().now_ms()
        rows = [
            changed(summary_row(*each), before.get(each.group.id), now_ms, interval)
            for each in found
        ]
        if output == "text" and is_terminal(sys.stdout):
            click.echo(CLEAR, nl=False)
        print_rows(rows, COLUMNS)
        before = {row["id"]: row["lag"] for row in rows}
        shown += 1
        if shown == count:
            return
        time.sleep(interval)


def changed(
    row: dict[str, Any], before: int | None, now_ms: int, interval_s: float
) -> dict[str, Any]:
    change = None if before is None else round((row["lag"] - before) / interval_s, 3)
    return {
        "time": iso_time(now_ms),
        "timestamp_ms": now_ms,
        **row,
        "change_per_second": change,
    }
