"""`penstock dlq redrive`."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import click

from penstock.cli.dlq.view import letter_options
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.frame.terminal import asks, confirm, note, warn
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, known_routes
from penstock.cli.selection import chosen_records
from penstock.client.cluster import Client
from penstock.counted import counted
from penstock.retry.redrive import Redriven, RedriveOptions
from penstock.retry.redrive import redrive as redrive_letters

COLUMNS = (Column("TO", "to"), Column("RECORDS", "records"), Column("DONE", "done"))


@click.command(
    "redrive",
    cls=Verb,
    example=[
        "penstock dlq redrive orders-again.dlq --dry-run",
        "penstock dlq redrive orders-again.dlq --error timeout --rate 100",
        "penstock dlq redrive orders-again.dlq 0:3 --to orders",
    ],
)
@click.argument("topic", type=TOPIC_NAME)
@letter_options
@click.option("--to", type=TOPIC_NAME, metavar="TOPIC", help="A topic for all. [their origins]")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="At most this many records per second. [no limit]",
)
@click.option("-n", "--count", type=click.IntRange(min=1), help="At most this many. [all]")
@click.option("--dry-run", is_flag=True, help="Only show how many would go where.")
@ROUTES
@remote
def redrive(
    remote: Remote,
    topic: str,
    to: str | None,
    rate: float | None,
    count: int | None,
    dry_run: bool,
    route_file: Path | None,
    **chosen: Any,
) -> None:
    """Send the dead letters of TOPIC back to their origins, each exactly once.

    A record gets its own headers back and starts again at attempt 0; one from a retry topic goes to
    the topic that its retries return to. Letters that were redriven before are left out. After an
    interruption, run it again: it continues. Letters without an existing origin stay, and the exit
    code is 5.

    Letters are written with your permissions, and anyone who may write to TOPIC can name any
    origin. So on a terminal you confirm the targets first; scripts name the ones they trust with
    --to or --origin.
    """
    records = chosen_records(**chosen)

    async def work(
        client: Client, *, dry_run: bool = dry_run, only: Collection[str] | None = None
    ) -> Redriven:
        options = RedriveOptions(
            to=to,
            only=only,
            routes=await known_routes(client, route_file),
            rate=rate,
            limit=count,
            dry_run=dry_run,
        )
        with ProgressBar("redriving", 1) as progress:

            def on_read(done: int, total: int) -> None:
                progress.total = total
                progress.at(done)

            return await redrive_letters(client, topic, records.selection, options, on_read)

    only: Collection[str] | None = None
    if to is None and not dry_run and asks():
        only = confirmed(topic, remote.run(partial(work, dry_run=True)))
    found = remote.run(partial(work, only=only))
    rows = [
        {"to": name, "records": number, "done": not dry_run}
        for name, number in sorted(found.counts.items())
    ]
    print_rows(rows, COLUMNS)
    records.warn()
    for reason, number in found.refused.most_common():
        warn(f"{counted(number, 'letter stays', 'letters stay')}: {reason}")
    if dry_run:
        note("nothing was redriven; repeat without --dry-run")
    if found.refused:
        raise SystemExit(ExitCode.PARTLY_DONE if found.counts else ExitCode.FAILED)


def confirmed(topic: str, found: Redriven) -> Collection[str]:
    """The target topics, after the user has confirmed them."""
    targets = [f"{number} to {name}" for name, number in sorted(found.counts.items())]
    if targets:
        confirm(f"Redrive letters of {topic}: {', '.join(targets)}?")
    return found.counts.keys()
