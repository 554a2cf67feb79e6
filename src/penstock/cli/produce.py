"""`penstock produce`: lines in, records out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import click

from penstock.cli.lines import lines
from penstock.cli.output import FORMAT, print_json
from penstock.cli.position import TimeType
from penstock.cli.record_json import BadLine, decode_record
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.produce import Delivered, NewRecord, Producer
from penstock.record.compression import Codec

CODECS = [codec.name.lower() for codec in Codec]


@dataclass(frozen=True, slots=True)
class Same:
    """What every record gets, whatever its line says; None and () leave it to the line."""

    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int | None
    timestamp_ms: int | None

    def on(self, record: NewRecord) -> NewRecord:
        return replace(
            record,
            key=record.key if self.key is None else self.key,
            headers=[*record.headers, *self.headers],
            partition=record.partition if self.partition is None else self.partition,
            timestamp=record.timestamp if self.timestamp_ms is None else self.timestamp_ms,
        )


@click.command()
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "-i",
    "--input",
    "input_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: a line is a value. json: a line is what `consume --format json` prints.",
)
@click.option("-s", "--key-separator", help="A line is a key, this, and a value.")
@click.option("-k", "--key", help="The key of every record.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="On every record."
)
@click.option("-p", "--partition", type=click.IntRange(min=0), help="[by key, else spread]")
@click.option("-t", "--timestamp", type=TimeType(), help="Ms since 1970, ISO-8601, -1h. [now]")
@click.option("-Z", "--tombstones", is_flag=True, help="A line without a value deletes its key.")
@click.option(
    "-z", "--codec", type=click.Choice(CODECS), default="none", show_default=True, help="Compress."
)
@click.option("--create-topic", is_flag=True, help="Let the broker make a topic that is missing.")
@FORMAT
@remote
def produce(
    remote: Remote,
    topic: str,
    file: BinaryIO,
    input_format: str,
    key_separator: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp: int | None,
    tombstones: bool,
    codec: str,
    create_topic: bool,
    output: str,
) -> None:
    """Write a record for each line of FILE, or of standard input, to TOPIC.

    Every record is acknowledged by all in-sync replicas. With --format json each one's place is
    printed; how many there were is told on standard error.
    """
    if input_format == "json" and (key_separator is not None or tombstones):
        raise click.UsageError("--key-separator and --tombstones are for --input text")
    if key_separator == "":
        raise click.UsageError("--key-separator cannot be empty")
    same = Same(
        None if key is None else key.encode(), list(map(header, headers)), partition, timestamp
    )

    def record(line: bytes, number: int) -> NewRecord:
        if input_format == "json":
            return same.on(decode_record(topic, line, number))
        return same.on(text_record(topic, line, number, key_separator, tombstones=tombstones))

    written = 0

    def tell(delivered: Sequence[Delivered]) -> None:
        nonlocal written
        written += len(delivered)
        if output == "json":
            for each in delivered:
                print_json(
                    {
                        "topic": topic,
                        "partition": each.partition.partition,
                        "offset": None if each.offset < 0 else each.offset,
                    }
                )

    async def write(client: Client) -> None:
        producer = Producer(client, codec=Codec[codec.upper()], create_topics=create_topic)
        await send_lines(producer, file, record, tell)

    try:
        remote.run(write)
    finally:
        click.echo(f"produced {written} records to {topic}", err=True)


async def send_lines(
    producer: Producer,
    file: BinaryIO,
    record: Callable[[bytes, int], NewRecord],
    tell: Callable[[Sequence[Delivered]], None],
) -> None:
    number = 0
    async for some in lines(file):
        records = [record(line, number + index) for index, line in enumerate(some, 1)]
        number += len(some)
        tell(await producer.send(records))


def text_record(
    topic: str, line: bytes, number: int, separator: str | None, *, tombstones: bool
) -> NewRecord:
    key, value = None, line
    if separator is not None:
        key, found, value = line.partition(separator.encode())
        if not found:
            raise BadLine(f"line {number}: there is no {separator!r} between key and value")
    return NewRecord(topic, None if tombstones and not value else value, key)


def header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
