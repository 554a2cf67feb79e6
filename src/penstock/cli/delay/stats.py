"""`penstock delay stats`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import Column, iso_time, print_rows
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, known_routes
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.retry.due_counts import due_counts
from penstock.retry.pending import Pending, find_pending
from penstock.retry.selection import EVERYTHING

COLUMNS = (
    Column("TOPIC", "topic"),
    Column("PENDING", "pending"),
    Column("SCHEDULES", "schedules"),
    Column("OVERDUE", "overdue"),
    Column("IN 1M", "within_minute"),
    Column("IN 1H", "within_hour"),
    Column("IN 1D", "within_day"),
    Column("LATER", "later"),
    Column("NEXT DUE", "next_due"),
    Column("LAST DUE", "last_due", is_wide=True),
    Column("BYTES", "bytes", is_wide=True),
)


@click.command("stats", cls=Verb, example="penstock delay stats")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, type=TOPIC_NAME)
@ROUTES
@remote
def stats(remote: Remote, topics: tuple[str, ...], route_file: Path | None) -> None:
    """Count the records of delay and retry topics that wait, and say when they are due."""

    async def work(client: Client) -> list[dict[str, Any]]:
        routes = await known_routes(client, route_file)
        for each in topics:
            if each not in routes:
                raise ConfigError(f"{each} is not a delay or retry topic")
        now_ms = SystemClock().now_ms()
        rows = []
        for each in topics or sorted(routes):
            found = await find_pending(client, routes[each], EVERYTHING, now_ms)
            rows.append(stats_row(each, found.found, now_ms))
        return rows

    print_rows(remote.run(work), COLUMNS)


def stats_row(topic: str, pending: Sequence[Pending], now_ms: int) -> dict[str, Any]:
    """`pending` is sorted by due time."""
    return {
        "topic": topic,
        "pending": len(pending),
        "schedules": sum(each.schedule is not None for each in pending),
        **due_counts(pending, now_ms),
        "next_due": iso_time(max(pending[0].due_ms, 1)) if pending else None,
        "last_due": iso_time(max(pending[-1].due_ms, 1)) if pending else None,
        "bytes": sum(each.size_bytes for each in pending),
    }
