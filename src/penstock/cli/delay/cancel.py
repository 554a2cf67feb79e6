"""`penstock delay cancel`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.delay.view import pending_row
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import confirm, note
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, print_rows
from penstock.cli.ranges import SECONDS
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, route_to
from penstock.cli.selection import chosen_records, selection_options
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.retry.cancel import CancelOutcome
from penstock.retry.cancel import cancel as cancel_records
from penstock.retry.pending import Pending, find_pending

COLUMNS = (
    Column("PARTITION", "partition"),
    Column("OFFSET", "offset"),
    Column("KEY", "key"),
    Column("DUE", "due"),
    Column("RESULT", "result"),
)


@click.command(
    "cancel",
    cls=Verb,
    example=["penstock delay cancel later 0:17", "penstock delay cancel later --key order-7"],
)
@click.argument("topic", type=TOPIC_NAME)
@selection_options("--due-after", "--due-before", "due")
@click.option("--all", "everything", is_flag=True, help="All records that wait.")
@click.option("--dry-run", is_flag=True, help="Only show what would be cancelled.")
@click.option(
    "--wait",
    "wait_s",
    type=SECONDS,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="How long to wait for the delay service to carry it out.",
)
@ROUTES
@remote
def cancel(
    remote: Remote,
    topic: str,
    everything: bool,
    dry_run: bool,
    wait_s: float,
    route_file: Path | None,
    **chosen: Any,
) -> None:
    """Cancel waiting records of a delay or retry TOPIC: each is either cancelled or delivered.

    RESULT is `cancelled`; `delivered` if it was too late; `ordered` if no delay service has
    confirmed in time: one will cancel the record before it delivers others. The exit code is 1 if
    none is cancelled, 5 if some are.
    """
    records = chosen_records(**chosen)
    if records.selection.is_everything and not everything:
        raise click.UsageError("say which records: PARTITION:OFFSET, --key, --filter, … or --all")
    if everything and not dry_run:
        confirm(f"Cancel all records that wait in {topic}?")

    async def work(client: Client) -> list[tuple[Pending, str]]:
        route, now_ms = await route_to(client, topic, route_file), SystemClock().now_ms()
        if dry_run:
            found = await find_pending(client, route, records.selection, now_ms)
            return [(each, "waits") for each in found.found]
        done = await cancel_records(client, route, records.selection, now_ms, wait_s)
        return [(each, outcome.value) for each, outcome in done]

    found = remote.run(work)
    print_rows([{**pending_row(each), "result": result} for each, result in found], COLUMNS)
    records.warn()
    if dry_run:
        note("nothing was cancelled; repeat without --dry-run")
        return
    if not found:
        raise ConfigError(f"no such record waits in {topic}")
    late = sum(result != CancelOutcome.CANCELLED.value for _, result in found)
    if late:
        raise SystemExit(ExitCode.PARTLY_DONE if late < len(found) else ExitCode.FAILED)
