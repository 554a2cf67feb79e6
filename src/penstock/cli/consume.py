"""`penstock consume`: prints the records of a topic."""

import sys
from collections.abc import Callable
from itertools import compress

import click

from penstock.cli.closed_pipe import until_reader_leaves
from penstock.cli.frame.command import Verb
from penstock.cli.output import FORMAT, iso_time, summary
from penstock.cli.position import (
    END,
    Position,
    PositionType,
    Since,
    find_offsets,
    offsets_at,
    warn_of_nearest,
)
from penstock.cli.ranges import PARTITION
from penstock.cli.record_json import encode_record
from penstock.cli.remote import Remote, remote
from penstock.cli.separator import SeparatorType
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.listing import IsolationLevel
from penstock.types import TopicPartition


@click.command(
    cls=Verb,
    example=[
        "penstock consume events --keys",
        "penstock consume events --offset -10 --format json",
    ],
)
@click.argument("topic")
@click.option(
    "-o",
    "--offset",
    "start",
    type=PositionType(),
    default="beginning",
    show_default=True,
    help="Where to start in each partition: beginning, end, N, +N after the beginning, -N before "
    "the end, or @TIME as ms since 1970, ISO-8601 or -1h.",
)
@click.option("-u", "--until", type=PositionType(), help="Where to stop, like --offset. [end]")
@click.option("-f", "--follow", is_flag=True, help="Wait for more records at the end.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option(
    "-p",
    "--partition",
    "chosen",
    multiple=True,
    type=PARTITION,
    help="Only this partition; repeatable. [all]",
)
@click.option("--committed", is_flag=True, help="Leave out open and aborted transactions.")
@click.option("-k", "--keys", is_flag=True, help="Show keys before values.")
@click.option("-H", "--headers", is_flag=True, help="Show headers.")
@click.option("-t", "--timestamps", is_flag=True, help="Show timestamps.")
@click.option("--offsets", is_flag=True, help="Show partitions and offsets.")
@click.option(
    "-s", "--separator", type=SeparatorType(), default="\t", help="Separates these. [a tab]"
)
@FORMAT
@remote
def consume(
    remote: Remote,
    topic: str,
    start: Position,
    until: Position | None,
    follow: bool,
    count: int | None,
    chosen: tuple[int, ...],
    committed: bool,
    keys: bool,
    headers: bool,
    timestamps: bool,
    offsets: bool,
    separator: str,
    output: str,
) -> None:
    """Print the records of TOPIC up to its end, or with --follow until Ctrl-C.

    The records of each partition are in order. As text, a record is a line with its value, or
    `null`; --format json shows the whole record, in the form that `produce` reads.
    """
    if not topic:
        raise click.BadParameter("must not be empty", param_hint="TOPIC")
    if follow and until is not None:
        raise click.UsageError("--follow and --until exclude each other")
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    columns = list(compress(COLUMNS, (timestamps, offsets, headers, keys, True)))

    def text_line(consumed: ConsumedRecord) -> bytes:
        return separator.encode().join(column(consumed) for column in columns) + b"\n"

    line = encode_record if output == "json" else text_line
    printed = 0

    def show(some: list[ConsumedRecord]) -> bool:
        """Print records; returns whether more are wanted."""
        nonlocal printed
        wanted = some[: None if count is None else count - printed]
        sys.stdout.buffer.write(b"".join(map(line, wanted)))
        sys.stdout.buffer.flush()
        printed += len(wanted)
        return printed != count

    async def read(client: Client) -> None:
        (found,) = await describe_topics(client, [topic])
        partitions = [TopicPartition(topic, index) for index in chosen or found.partitions]
        found_start = await find_offsets(client, partitions, start, isolation)
        if start.since is not Since.END:  # the last ten of seven records are the seven
            warn_of_nearest(found_start)
        begin = {each: at.offset for each, at in found_start.items()}
        end = until or END
        ends = None if follow else await offsets_at(client, partitions, end, isolation)
        async with SimpleConsumer(client, begin, ends=ends, isolation=isolation) as reader:
            with until_reader_leaves():
                await read_on(reader, show)

    with summary(lambda: printed, lambda: f"consumed {printed} records of {topic}"):
        remote.run(read)


async def read_on(reader: SimpleConsumer, show: Callable[[list[ConsumedRecord]], bool]) -> None:
    while reader.unfinished:
        if not show(await reader.poll()):
            return


def _time(each: ConsumedRecord) -> bytes:
    return (iso_time(each.record.timestamp) or "-").encode()


def _position(each: ConsumedRecord) -> bytes:
    return f"{each.partition.partition}:{each.record.offset}".encode()


def _headers(each: ConsumedRecord) -> bytes:
    return b",".join(
        name.encode(errors="surrogateescape") + b"=" + _or_null(value)
        for name, value in each.record.headers
    )


def _key(each: ConsumedRecord) -> bytes:
    return _or_null(each.record.key)


def _value(each: ConsumedRecord) -> bytes:
    return _or_null(each.record.value)


def _or_null(data: bytes | None) -> bytes:
    return b"null" if data is None else data


COLUMNS: tuple[Callable[[ConsumedRecord], bytes], ...] = (_time, _position, _headers, _key, _value)
