"""`penstock produce`: writes a record for each line."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, TypeAlias

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code, report_error
from penstock.cli.frame.command import Verb
from penstock.cli.lines import LONGEST_BYTES, lines
from penstock.cli.output import FORMAT, print_json, summary
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
class Overrides:
    """Fields that every record gets, whatever its line has; None and () leave the line's."""

    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int | None
    timestamp_ms: int | None

    def applied_to(self, record: ProducerRecord) -> ProducerRecord:
        return replace(
            record,
            key=record.key if self.key is None else self.key,
            headers=[*record.headers, *self.headers],
            partition=record.partition if self.partition is None else self.partition,
            timestamp=record.timestamp if self.timestamp_ms is None else self.timestamp_ms,
        )


class LineRejected(KafkaError):
    """A line whose record the broker rejected."""

    def __init__(self, number: int, error: BrokerRefused) -> None:
        super().__init__(f"line {number}: {error}")
        self.code = error.code  # type: ignore[misc]  # see KafkaError


NoRecord: TypeAlias = BadLine | LineRejected


@click.command(cls=Verb, example="printf 'a\\nb\\n' | penstock produce events")
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "-i",
    "--input",
    "input_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: a line is a value. json: as `consume --format json` prints.",
)
@click.option(
    "-s",
    "--key-separator",
    type=SeparatorType(),
    help=r"Separates key and value in a line; '\t' is a tab.",
)
@click.option("-k", "--key", help="The key of every record.")
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record.",
)
@click.option(
    "-p", "--partition", type=PARTITION, help="Partition of every record. [by key, else spread]"
)
@click.option(
    "-t", "--timestamp", type=TimeType(), help="Timestamp: ms since 1970, ISO-8601 or -1h. [now]"
)
@click.option(
    "-Z", "--tombstones", is_flag=True, help="An empty value becomes null, which deletes its key."
)
@click.option(
    "-z",
    "--codec",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="Compression.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="For a line that is not a record, or that the broker rejects: stop there, or skip it. "
    "Either way the line is reported, the lines before it are written, and the exit code is 5 if "
    "any was. Lines after one that the broker rejects may be written to other partitions.",
)
@click.option("--create-topic", is_flag=True, help="Let the broker create a missing topic.")
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

    All in-sync replicas acknowledge every record. --format json prints the partition and offset of
    each record; standard error has the count.
    """
    if input_format == "json" and (key_separator is not None or tombstones):
        raise click.UsageError("--key-separator and --tombstones are for --input text")
    if key_separator == "":
        raise click.UsageError("--key-separator cannot be empty")
    if not topic:
        raise click.BadParameter("must not be empty", param_hint="TOPIC")
    overrides = Overrides(
        None if key is None else key.encode(), list(map(header, headers)), partition, timestamp
    )

    def record(line: bytes, number: int) -> ProducerRecord:
        if len(line) > LONGEST_BYTES:
            raise BadLine(f"line {number}: longer than {LONGEST_BYTES} bytes")
        if input_format == "json":
            return overrides.applied_to(decode_record(topic, line, number))
        return overrides.applied_to(
            text_record(topic, line, number, key_separator, tombstones=tombstones)
        )

    written, skipped = 0, 0
    latest: NoRecord | None = None

    def on_delivered(delivered: list[RecordMetadata]) -> None:
        nonlocal written
        written += len(delivered)  # first: the reader of the output may close it
        for each in delivered if output == "json" else ():
            print_json(
                {
                    "topic": topic,
                    "partition": each.partition.partition,
                    "offset": None if each.offset < 0 else each.offset,
                }
            )

    def on_bad_line(line: NoRecord) -> None:
        nonlocal skipped, latest
        if on_error == "stop":
            raise line
        skipped, latest = skipped + 1, line
        report_error(line, as_json=output == "json")

    async def write(client: Client) -> None:
        producer = IdempotentProducer(
            client, codec=Codec[codec.upper()], create_topics=create_topic
        )
        # --partition is wrong for all lines or for none.
        check = partial(partition_of, client) if partition is None else None
        async for some in records_of(file, record, on_bad_line, check):
            records = [each for _, each in some]
            results = await producer.deliver(records, past_refused=on_error == "skip")
            on_delivered([each for each in results if isinstance(each, RecordMetadata)])
            for (number, _), result in zip(some, results, strict=True):
                if isinstance(result, BrokerRefused):
                    on_bad_line(LineRejected(number, result))

    def told() -> str:
        left_out = f", skipped {skipped} lines" if skipped else ""
        return f"produced {written} records to {topic}{left_out}"

    with summary(lambda: written + skipped, told):
        try:
            remote.run(write)
        except (BadLine, LineRejected) as line:
            raise SomeFailed([line], written + 1) from None
    if latest is not None:
        raise SystemExit(ExitCode.PARTLY_DONE if written else exit_code(latest))


async def records_of(
    file: BinaryIO,
    record: Callable[[bytes, int], ProducerRecord],
    on_bad_line: Callable[[BadLine], None],
    check: Callable[[ProducerRecord, int], Awaitable[None]] | None,
) -> AsyncIterator[list[tuple[int, ProducerRecord]]]:
    """Numbers and records of the lines that have come.

    If `on_bad_line` raises, the records before that line are still yielded.
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
                    on_bad_line(error)
                except BadLine:
                    if records:
                        yield records
                    raise
            else:
                records.append((number, made))
        if records:
            yield records


async def partition_of(client: Client, record: ProducerRecord, number: int) -> None:
    """Reject a line with a partition that its topic does not have; the others are written."""
    try:
        found = await client.topic(record.topic)
    except KafkaError:
        return  # topic or broker is missing: the producer finds out
    if record.partition not in found.partitions:
        raise BadLine(f"line {number}: {record.topic} has no partition {record.partition}")


def text_record(
    topic: str, line: bytes, number: int, separator: str | None, *, tombstones: bool
) -> ProducerRecord:
    key, value = None, line
    if separator is not None:
        key, found, value = line.partition(separator.encode())
        if not found:
            raise BadLine(f"line {number}: no {separator!r} between key and value")
    return ProducerRecord(topic, None if tombstones and not value else value, key)


def header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
