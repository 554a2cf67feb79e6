"""`penstock dlq peek`."""

from pathlib import Path
from typing import Any

import click

from penstock.cli.decoding import decoding_of, decoding_options
from penstock.cli.dlq.view import letter_options
from penstock.cli.frame.command import Verb
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT
from penstock.cli.record_printing import RecordPrinter
from penstock.cli.remote import Remote, remote
from penstock.cli.selection import chosen_records
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord
from penstock.retry.letters import open_letters, read_letters

SHOWN = (True, True, True, True, True)


@click.command(
    "peek",
    cls=Verb,
    example=[
        "penstock dlq peek orders-again.dlq --count 1",
        "penstock dlq peek orders-again.dlq 0:3 --format json",
    ],
)
@click.argument("topic", type=TOPIC_NAME)
@letter_options
@click.option("-n", "--count", type=click.IntRange(min=1), default=10, show_default=True)
@decoding_options
@FORMAT
@remote
def peek(
    remote: Remote,
    topic: str,
    count: int,
    decode: str,
    decode_key: str,
    schema: Path | None,
    message: str | None,
    registry: str | None,
    output: str,
    **chosen: Any,
) -> None:
    """Print dead letters of TOPIC: timestamp, position, headers, key and value; they stay."""
    records = chosen_records(**chosen)
    decoding = decoding_of(
        decode=decode, decode_key=decode_key, schema=schema, message=message, registry=registry
    )

    async def work(client: Client) -> list[ConsumedRecord]:
        letters, found = await open_letters(client, topic), list[ConsumedRecord]()
        async for each in read_letters(client, letters, records.selection):
            found.append(ConsumedRecord(each.partition, each.record))
            if len(found) == count:
                break
        return found

    RecordPrinter(output, decoding, show=SHOWN).print(remote.run(work))
    records.warn()
