"""Writes a record for each line, for `penstock produce`."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, Protocol, TypeAlias

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code, report_error
from penstock.cli.frame.progress import ProgressBar
from penstock.cli.lines import lines
from penstock.cli.output import print_json, summary
from penstock.cli.remote import Remote
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.new_producer import new_producer
from penstock.client.produce import Acks, ProducedRecord, ProducerRecord
from penstock.client.producer_session import ProducerSettings
from penstock.client.properties import producer_settings
from penstock.client.transactional_producer import TransactionalProducer
from penstock.counted import counted
from penstock.errors import KafkaError
from penstock.record_view.record_input import InputReader, record_reader, several
from penstock.record_view.record_json import BadLine


class RecordProducer(Protocol):
    """The interface of all producers."""

    async def deliver(
        self, records: Sequence[ProducerRecord], *, past_refused: bool = False
    ) -> list[ProducedRecord | BrokerRefused | None]: ...


@dataclass(frozen=True, slots=True)
class Overrides:
    """Fields that override those of every line; None and () keep the line's."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """The options of `penstock produce`; `settings` are given producer settings."""

    topic: str
    files: Sequence[BinaryIO]
    form: str
    key_separator: str | None
    key_field: str | None
    key: str | None
    headers: tuple[str, ...]
    partition: int | None
    timestamp: int | None
    tombstones: bool
    settings: Mapping[str, str | None]
    rate: float | None
    on_error: str
    create_topic: bool
    output: str


def produce_lines(remote: Remote, options: ProduceOptions) -> None:
    settings = _settings(remote, options.settings)
    topic, output, partition = options.topic, options.output, options.partition
    key = None if options.key is None else options.key.encode()
    overrides = Overrides(key, list(several(options.headers)), partition, options.timestamp)
    new_reader = partial(
        record_reader,
        options.form,
        topic,
        separator=options.key_separator,
        tombstones=options.tombstones,
        key_field=options.key_field,
    )
    sources = options.files or (sys.stdin.buffer,)
    written, skipped = 0, 0
    latest: NoRecord | None = None

    uncommitted: list[ProducedRecord] = []
    pace = SendPace(options.rate)  # shared by all files

    def on_delivered(delivered: list[ProducedRecord]) -> None:
        nonlocal written
        written += len(delivered)  # count first: the reader may close the output
        if output == "json" and settings.transactional_id is None:
            print_delivered(delivered)
        elif output == "json":
            uncommitted.extend(delivered)

    def on_bad_line(line: NoRecord) -> None:
        nonlocal skipped, latest
        if options.on_error == "stop":
            raise line
        skipped, latest = skipped + 1, line
        report_error(line, as_json=output == "json")

    async def write_file(client: Client, producer: RecordProducer, file: BinaryIO) -> None:
        reader, name = new_reader(), _name(file) if len(sources) > 1 else ""
        # A wrong --partition is wrong for all lines, so lines are checked only without it.
        check = partial(partition_of, client) if partition is None else None
        with ProgressBar(f"produced to {topic}", _size(file)) as progress:
            before = written
            async for some in records_of(file, reader, on_bad_line, check, overrides, name):
                for part in pace.parts(some):
                    await pace.wait()
                    results = await producer.deliver(
                        [each for _, each in part], past_refused=options.on_error == "skip"
                    )
                    on_delivered([each for each in results if isinstance(each, ProducedRecord)])
                    for (number, _), result in zip(part, results, strict=True):
                        if isinstance(result, BrokerRefused):
                            on_bad_line(LineRejected(f"{name}line {number}", result))
                progress.at(written - before if progress.total is None else file.tell())

    async def write(client: Client) -> None:
        nonlocal written
        producer = new_producer(client, settings, create_topics=options.create_topic)
        try:
            async with AsyncExitStack() as stack:
                if isinstance(producer, TransactionalProducer):
                    await stack.enter_async_context(producer.transaction())
                for file in sources:
                    await write_file(client, producer, file)
            print_delivered(uncommitted)
        except BaseException:
            if isinstance(producer, TransactionalProducer):
                written = 0  # the transaction is aborted, or its commit failed
            raise

    def summary_text() -> str:
        left_out = f", skipped {counted(skipped, 'line')}" if skipped else ""
        return f"produced {counted(written, 'record')} to {topic}{left_out}"

    with summary(lambda: written + skipped, summary_text):
        try:
            remote.run(write)
        except (BadLine, LineRejected) as line:
            raise SomeFailed([line], written + 1) from None
    if latest is not None:
        raise SystemExit(ExitCode.PARTLY_DONE if written else exit_code(latest))


def print_delivered(delivered: Iterable[ProducedRecord]) -> None:
    for each in delivered:
        print_json(
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "offset": None if each.offset < 0 else each.offset,
            }
        )


def _settings(remote: Remote, options: Mapping[str, str | None]) -> ProducerSettings:
    """Options override settings; an explicit weaker acks disables idempotence.

    --transactional-id sets what a transaction needs, whatever a profile has.
    """
    given = {name: text for name, text in options.items() if text is not None}
    if "transactional.id" in given:
        given = {"acks": "all", "enable.idempotence": "true", **given}
    settings = producer_settings({**remote.settings, **given})
    if settings.acks is not Acks.ALL and settings.idempotent:
        if "enable.idempotence" in given or settings.transactional_id is not None:
            raise click.UsageError("idempotence and transactions need --acks all")
        settings = replace(settings, idempotent=False)
    if settings.transactional_id is not None and settings.acks is not Acks.ALL:
        raise click.UsageError("transactions need --acks all")
    return settings


class SendPace:
    """Splits records into parts, to send at most `rate` per second; None: no limit."""

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
    reader: InputReader,
    on_bad_line: Callable[[BadLine], None],
    check: Callable[[ProducerRecord, int], Awaitable[None]] | None,
    overrides: Overrides,
    name: str = "",
) -> AsyncIterator[list[tuple[int, ProducerRecord]]]:
    """Yield the records of lines as they arrive, with their line numbers.

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
    """Reject a line whose partition does not exist; the other lines are still written."""
    try:
        found = await client.topic(record.topic)
    except KafkaError:
        return  # the topic or broker is missing: the producer will report it
    if record.partition not in found.partitions:
        raise BadLine(f"line {number}: {record.topic} has no partition {record.partition}")


def _name(file: BinaryIO) -> str:
    return f"{getattr(file, 'name', 'input')}: "


def _size(file: BinaryIO) -> int | None:
    """The size of a disk file, for its progress; None for a pipe or terminal."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
