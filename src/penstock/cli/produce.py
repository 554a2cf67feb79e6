"""`penstock produce`: lines in, records out."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, TypeAlias

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code, tell
from penstock.cli.lines import LONGEST_BYTES, lines
from penstock.cli.output import FORMAT, print_json
from penstock.cli.position import TimeType
from penstock.cli.ranges import PARTITION
from penstock.cli.record_json import BadLine, decode_record
from penstock.cli.remote import Remote, remote
from penstock.cli.separator import SeparatorType
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.produce import IdempotentProducer, ProducerRecord, RecordMetadata
from penstock.errors import KafkaError
from penstock.record.compression import Codec

CODECS = [codec.name.lower() for codec in Codec]


@dataclass(frozen=True, slots=True)
class Same:
    """What every record gets, whatever its line says; None and () leave it to the line."""

    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int | None
    timestamp_ms: int | None

    def on(self, record: ProducerRecord) -> ProducerRecord:
        return replace(
            record,
            key=record.key if self.key is None else self.key,
            headers=[*record.headers, *self.headers],
            partition=record.partition if self.partition is None else self.partition,
            timestamp=record.timestamp if self.timestamp_ms is None else self.timestamp_ms,
        )


class LineRefused(KafkaError):
    """A line whose record the broker does not take."""

    def __init__(self, number: int, refusal: BrokerRefused) -> None:
        super().__init__(f"line {number}: {refusal}")
        self.code = refusal.code


NoRecord: TypeAlias = BadLine | LineRefused


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
@click.option(
    "-s",
    "--key-separator",
    type=SeparatorType(),
    help=r"A line is a key, this, and a value; '\t' is a tab.",
)
@click.option("-k", "--key", help="The key of every record.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="On every record."
)
@click.option("-p", "--partition", type=PARTITION, help="[by key, else spread]")
@click.option("-t", "--timestamp", type=TimeType(), help="Ms since 1970, ISO-8601, -1h. [now]")
@click.option("-Z", "--tombstones", is_flag=True, help="A line without a value deletes its key.")
@click.option(
    "-z", "--codec", type=click.Choice(CODECS), default="none", show_default=True, help="Compress."
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What a line that is no record, or that the broker refuses, does: stop there, or be left "
    "out. Either way it is named, the lines before it are written, and the exit code is 5 if any "
    "was. Lines behind one that the broker refuses may have been written to other partitions.",
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
    on_error: str,
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
    if not topic:
        raise click.BadParameter("a topic has a name", param_hint="TOPIC")
    same = Same(
        None if key is None else key.encode(), list(map(header, headers)), partition, timestamp
    )

    def record(line: bytes, number: int) -> ProducerRecord:
        if len(line) > LONGEST_BYTES:
            raise BadLine(f"line {number}: it is longer than {LONGEST_BYTES} bytes")
        if input_format == "json":
            return same.on(decode_record(topic, line, number))
        return same.on(text_record(topic, line, number, key_separator, tombstones=tombstones))

    written, skipped = 0, 0
    latest: NoRecord | None = None

    def told(delivered: list[RecordMetadata]) -> None:
        nonlocal written
        written += len(delivered)  # first: whoever reads what is printed may leave
        for each in delivered if output == "json" else ():
            print_json(
                {
                    "topic": topic,
                    "partition": each.partition.partition,
                    "offset": None if each.offset < 0 else each.offset,
                }
            )

    def passed_over(line: NoRecord) -> None:
        nonlocal skipped, latest
        if on_error == "stop":
            raise line
        skipped, latest = skipped + 1, line
        tell(line, as_json=output == "json")

    async def write(client: Client) -> None:
        producer = IdempotentProducer(
            client, codec=Codec[codec.upper()], create_topics=create_topic
        )
        # What --partition names is wrong for all lines, or for none.
        check = partial(partition_of, client) if partition is None else None
        async for some in records_of(file, record, passed_over, check):
            records = [each for _, each in some]
            results = await producer.deliver(records, past_refused=on_error == "skip")
            told([each for each in results if isinstance(each, RecordMetadata)])
            for (number, _), result in zip(some, results, strict=True):
                if isinstance(result, BrokerRefused):
                    passed_over(LineRefused(number, result))

    try:
        remote.run(write)
    except (BadLine, LineRefused) as line:
        raise SomeFailed([line], written + 1) from None
    finally:
        left_out = f", left out {skipped} lines" if skipped else ""
        click.echo(f"produced {written} records to {topic}{left_out}", err=True)
    if latest is not None:
        raise SystemExit(ExitCode.PARTLY_DONE if written else exit_code(latest))


async def records_of(
    file: BinaryIO,
    record: Callable[[bytes, int], ProducerRecord],
    passed_over: Callable[[BadLine], None],
    check: Callable[[ProducerRecord, int], Awaitable[None]] | None,
) -> AsyncIterator[list[tuple[int, ProducerRecord]]]:
    """Numbers and records of whatever lines have come.

    When `passed_over` raises, those before are given.
    """
    number = 0
    async for some in lines(file):
        records: list[tuple[int, ProducerRecord]] = []
        for line in some:
            number += 1
            try:
                made = record(line, number)
                if check is not None and made.partition is not None:
                    await check(made, number)
            except BadLine as error:
                try:
                    passed_over(error)
                except BadLine:
                    if records:
                        yield records
                    raise
            else:
                records.append((number, made))
        if records:
            yield records


async def partition_of(client: Client, record: ProducerRecord, number: int) -> None:
    """Refuse a line for a partition that its topic does not have: the others are still written."""
    try:
        found = await client.topic(record.topic)
    except KafkaError:
        return  # the topic is missing, or its broker is: the producer finds out
    if record.partition not in found.partitions:
        raise BadLine(f"line {number}: {record.topic} has no partition {record.partition}")


def text_record(
    topic: str, line: bytes, number: int, separator: str | None, *, tombstones: bool
) -> ProducerRecord:
    key, value = None, line
    if separator is not None:
        key, found, value = line.partition(separator.encode())
        if not found:
            raise BadLine(f"line {number}: there is no {separator!r} between key and value")
    return ProducerRecord(topic, None if tombstones and not value else value, key)


def header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
