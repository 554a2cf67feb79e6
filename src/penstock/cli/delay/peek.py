"""`penstock delay peek`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.decoding import decoding_of, decoding_options
from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT
from penstock.cli.record_printing import RecordPrinter
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, route_to
from penstock.cli.selection import chosen_records, selection_options
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord
from penstock.clock import SystemClock
from penstock.retry.pending import find_pending
from penstock.retry.positions import records_at

SHOWN = (True, True, True, True, True)


@click.command(
    "peek", cls=Verb, example=["penstock delay peek later", "penstock delay peek later 0:17"]
)
@click.argument("topic", type=TOPIC_NAME)
@selection_options("--due-after", "--due-before", "due")
@click.option("-n", "--count", type=click.IntRange(min=1), default=10, show_default=True)
@decoding_options
@ROUTES
@FORMAT
@remote
def peek(
    remote: Remote,
    topic: str,
    count: int,
    route_file: Path | None,
    decode: str,
    decode_key: str,
    schema: Path | None,
    message: str | None,
    registry: str | None,
    output: str,
    **chosen: Any,
) -> None:
    """Print waiting records of a delay or retry TOPIC, those due first; they stay in it."""
    records = chosen_records(**chosen)
    decoding = decoding_of(
        decode=decode, decode_key=decode_key, schema=schema, message=message, registry=registry
    )

    async def work(client: Client) -> list[ConsumedRecord]:
        route = await route_to(client, topic, route_file)
        found = await find_pending(client, route, records.selection, SystemClock().now_ms())
        read = []
        for each in found.found[:count]:
            at = await records_at(client, each.partition, [each.offset])
            read += [ConsumedRecord(each.partition, record) for record in at.values()]
        return read

    RecordPrinter(output, decoding, show=SHOWN).print(remote.run(work))
    records.warn()
