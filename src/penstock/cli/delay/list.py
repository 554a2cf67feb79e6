"""`penstock delay list`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.delay.view import COLUMNS, ROUTE_COLUMNS, pending_row, route_row
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import note
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, known_routes, route_to
from penstock.cli.selection import chosen_records, selection_options
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.counted import counted
from penstock.retry.pending import Pending, find_pending


@click.command(
    "list",
    cls=Verb,
    example=["penstock delay list", "penstock delay list later --due-before +1h --count 20"],
)
@click.argument("topic", required=False, type=TOPIC_NAME)
@selection_options("--due-after", "--due-before", "due")
@click.option("-n", "--count", type=click.IntRange(min=1), help="At most this many. [all]")
@ROUTES
@remote
def list_(
    remote: Remote, topic: str | None, count: int | None, route_file: Path | None, **chosen: Any
) -> None:
    """List the waiting records of a delay or retry TOPIC, those due first.

    Without TOPIC: the delay and retry topics.
    """
    if topic is None:
        routes = remote.run(lambda client: known_routes(client, route_file))
        print_rows([route_row(routes[name]) for name in sorted(routes)], ROUTE_COLUMNS)
        return
    records = chosen_records(**chosen)

    async def work(client: Client) -> list[Pending]:
        route = await route_to(client, topic, route_file)
        now_ms = SystemClock().now_ms()
        return (await find_pending(client, route, records.selection, now_ms)).found

    found = remote.run(work)
    print_rows([pending_row(each) for each in found[:count]], COLUMNS)
    records.warn()
    if count is not None and len(found) > count:
        note(counted(len(found) - count, "more waits", "more wait"))
