"""`penstock produce`: writes a record for each line."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Protocol, TypeAlias

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code, report_error
from penstock.cli.frame.command import Verb
from penstock.cli.frame.progress import Progress
from penstock.cli.lines import lines
from penstock.cli.names import TOPIC_NAME
from penstock.cli.output import FORMAT, print_json, summary
from penstock.cli.position import TimeType
from penstock.cli.ranges import PARTITION
from penstock.cli.record_input import FORMATS, RecordReader, check_form, record_reader, several
from penstock.cli.record_json import BadLine
from penstock.cli.remote import Remote, remote
from penstock.cli.separator import SeparatorType
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.produce import (
    Acks,
    IdempotentProducer,
    PlainProducer,
    ProducerRecord,
    RecordMetadata,
)
from penstock.client.producer_session import ProducerSettings
from penstock.client.properties import producer_settings
from penstock.client.transactional_producer import TransactionalProducer
from penstock.errors import ConfigError, KafkaError
from penstock.record.compression import Codec

CODECS = [codec.name.lower() for codec in Codec]


class Producer(Protocol):
    """What all producers do."""

    async def deliver(
        self, records: Sequence[ProducerRecord], *, past_refused: bool = False
    ) -> list[RecordMetadata | BrokerRefused | None]: ...


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

    def __init__(self, place: str, error: BrokerRefused) -> None:
        super().__init__(f"{place}: {error}")
        self.code = error.code  # type: ignore[misc]  # see KafkaError


NoRecord: TypeAlias = BadLine | LineRejected


class InputType(click.ParamType[str]):
    """A format of input, or a template."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            return check_form(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return f"[{'|'.join(FORMATS)}|TEMPLATE]"


@click.command(
    cls=Verb,
    example=[
        "printf 'a\\nb\\n' | penstock produce events",
        "penstock produce events prices.csv --input csv",
        "penstock produce events lines.txt --input '%k:%s' --codec zstd",
    ],
)
@click.argument("topic", type=TOPIC_NAME)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb", lazy=False))
@click.option(
    "-i",
    "--input",
    "form",
    type=InputType(),
    default="text",
    show_default=True,
    help="text: a line is a value. json: as `consume --format json` prints. ndjson: a line is a "
    "value in JSON. csv: the first line names columns: key, value, partition, timestamp, "
    "header.NAME; without value, the others are it. With a % it is a template, as '%k:%s'.",
)
@click.option(
    "-s",
    "--key-separator",
    type=SeparatorType(),
    help=r"Separates key and value in a line; '\t' is a tab.",
)
@click.option("--key-field", metavar="NAME", help="ndjson: the field that is the key, as user.id.")
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
@click.option("-z", "--codec", type=click.Choice(CODECS), help="Compression. [none]")
@click.option(
    "-a",
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    help="Who must have a record: nobody, its leader, or all in-sync replicas. [all]",
)
@click.option(
    "--idempotent/--no-idempotent",
    default=None,
    help="No duplicates by retries; needs --acks all. [idempotent]",
)
@click.option(
    "--transactional-id",
    metavar="ID",
    help="Write everything in one transaction, or nothing if a line fails.",
)
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many records a second."
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
    files: tuple[BinaryIO, ...],
    form: str,
    key_separator: str | None,
    key_field: str | None,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp: int | None,
    tombstones: bool,
    codec: str | None,
    acks: str | None,
    idempotent: bool | None,
    transactional_id: str | None,
    rate: float | None,
    on_error: str,
    create_topic: bool,
    output: str,
) -> None:
    """Write a record for each line of FILE, or of standard input, to TOPIC.

    All in-sync replicas acknowledge every record, unless --acks says otherwise. --format json
    prints the partition and offset of each record; standard error has the count.
    """
    if key_separator is not None and form != "text":
        raise click.UsageError("--key-separator is for --input text")
    if tombstones and form in {"json", "ndjson", "csv"}:
        raise click.UsageError("--tombstones is for --input text and templates")
    if key_field is not None and form != "ndjson":
        raise click.UsageError("--key-field is for --input ndjson")
    if key_separator == "":
        raise click.UsageError("--key-separator cannot be empty")
    if not topic:
        raise click.BadParameter("must not be empty", param_hint="TOPIC")
    settings = _settings(
        remote,
        {
            "acks": acks,
            "enable.idempotence": None if idempotent is None else str(idempotent).lower(),
            "transactional.id": transactional_id,
            "compression.type": codec,
        },
    )
    overrides = Overrides(
        None if key is None else key.encode(), list(several(headers)), partition, timestamp
    )
    new_reader = partial(
        record_reader,
        form,
        topic,
        separator=key_separator,
        tombstones=tombstones,
        key_field=key_field,
    )
    sources = files or (sys.stdin.buffer,)
    written, skipped = 0, 0
    latest: NoRecord | None = None

    def on_delivered(delivered: list[RecordMetadata]) -> None:
        nonlocal written
        written += len(delivered)  # first: the reader of the output may close it
        for each in delivered if output == "json" else ():
            print_json(
                {
                    "topic": each.partition.topic,
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

    async def write_file(client: Client, producer: Producer, file: BinaryIO) -> None:
        reader, name = new_reader(), _name(file) if len(sources) > 1 else ""
        # --partition is wrong for all lines or for none.
        check = partial(partition_of, client) if partition is None else None
        pace = Pace(rate)
        with Progress(f"produced to {topic}", _size(file)) as progress:
            async for some in records_of(file, reader, on_bad_line, check, overrides, name):
                for part in pace.parts(some):
                    await pace.wait()
                    results = await producer.deliver(
                        [each for _, each in part], past_refused=on_error == "skip"
                    )
                    on_delivered([each for each in results if isinstance(each, RecordMetadata)])
                    for (number, _), result in zip(part, results, strict=True):
                        if isinstance(result, BrokerRefused):
                            on_bad_line(LineRejected(f"{name}line {number}", result))
                if progress.total:
                    progress.at(file.tell())

    async def write(client: Client) -> None:
        nonlocal written
        producer = _producer(client, settings, create_topic)
        try:
            async with AsyncExitStack() as stack:
                if isinstance(producer, TransactionalProducer):
                    await stack.enter_async_context(producer.transaction())
                for file in sources:
                    await write_file(client, producer, file)
        except BaseException:
            if isinstance(producer, TransactionalProducer):
                written = 0  # it is aborted, or its commit failed
            raise

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


def _settings(remote: Remote, options: dict[str, str | None]) -> ProducerSettings:
    """Options win over settings; an explicit weaker acks ends idempotence."""
    given = {name: text for name, text in options.items() if text is not None}
    settings = producer_settings({**remote.settings, **given})
    if settings.acks is not Acks.ALL and settings.idempotent:
        if "enable.idempotence" in given or settings.transactional_id is not None:
            raise click.UsageError("idempotence and transactions need --acks all")
        settings = replace(settings, idempotent=False)
    if settings.transactional_id is not None and settings.acks is not Acks.ALL:
        raise click.UsageError("transactions need --acks all")
    return settings


def _producer(
    client: Client, settings: ProducerSettings, create_topic: bool
) -> IdempotentProducer | PlainProducer | TransactionalProducer:
    codec = settings.codec
    if settings.transactional_id is not None:
        return TransactionalProducer(
            client,
            settings.transactional_id,
            timeout_ms=settings.transaction_timeout_ms,
            codec=codec,
            create_topics=create_topic,
        )
    if settings.idempotent:
        return IdempotentProducer(client, codec=codec, create_topics=create_topic)
    return PlainProducer(client, acks=settings.acks, codec=codec, create_topics=create_topic)


class Pace:
    """Divides records so that no more than a rate are sent a second; None: as fast as can be."""

    PARTS_PER_S = 10

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due_s = 0.0
        self._next = 0

    def parts(
        self, records: list[tuple[int, ProducerRecord]]
    ) -> Sequence[list[tuple[int, ProducerRecord]]]:
        if self._rate is None:
            return [records]
        size = max(1, int(self._rate / self.PARTS_PER_S))
        self._next = size
        return [records[at : at + size] for at in range(0, len(records), size)]

    async def wait(self) -> None:
        if self._rate is None:
            return
        now_s = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, self._due_s - now_s))
        self._due_s = max(self._due_s, now_s) + self._next / self._rate


async def records_of(
    file: BinaryIO,
    reader: RecordReader,
    on_bad_line: Callable[[BadLine], None],
    check: Callable[[ProducerRecord, int], Awaitable[None]] | None,
    overrides: Overrides,
    name: str = "",
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
                made = reader.read(line, number)
                if made is None:
                    continue
                made = overrides.applied_to(made)
                if check is not None and made.partition is not None:
                    await check(made, number)
            except BadLine as error:
                try:
                    on_bad_line(BadLine(f"{name}{error}"))
                except BadLine:
                    if records:
                        yield records
                    raise
            else:
                records.append((number, made))
        if records:
            yield records
    reader.end(number)


async def partition_of(client: Client, record: ProducerRecord, number: int) -> None:
    """Reject a line with a partition that its topic does not have; the others are written."""
    try:
        found = await client.topic(record.topic)
    except KafkaError:
        return  # topic or broker is missing: the producer finds out
    if record.partition not in found.partitions:
        raise BadLine(f"line {number}: {record.topic} has no partition {record.partition}")


def _name(file: BinaryIO) -> str:
    return f"{getattr(file, 'name', 'input')}: "


def _size(file: BinaryIO) -> int:
    """The size of a file on disk, for its progress; 0 for a pipe or a terminal."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
