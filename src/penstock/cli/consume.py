"""`penstock consume`: prints the records of topics."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.decoding import decoding_of, decoding_options
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import note, warn
from penstock.cli.names import GROUP_NAME, TOPIC_NAME
from penstock.cli.position import PositionType
from penstock.cli.ranges import PARTITION
from penstock.cli.record_format import RECORD_FORMAT
from penstock.cli.remote import Remote, remote
from penstock.cli.separator import SeparatorType
from penstock.counted import counted

if TYPE_CHECKING:
    from penstock.cli.record_printing import RecordPrinter
    from penstock.client.cluster import Client
    from penstock.client.consume import ConsumedRecord
    from penstock.client.position import Position
    from penstock.record_view.decoded import Decode
    from penstock.record_view.filter import RecordFilter


@click.command(
    cls=Verb,
    example=[
        "penstock consume events --keys",
        "penstock consume events --offset -10 --format json",
        "penstock consume events --group readers --follow",
        r"penstock consume events --format '%T %k %s\n'",
    ],
)
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, type=TOPIC_NAME)
@click.option("-r", "--regex", is_flag=True, help="TOPIC is a regular expression (RE2).")
@click.option(
    "-o",
    "--offset",
    "start",
    type=PositionType(),
    help="Where to start in each partition: beginning, end, N, +N after the beginning, -N before "
    "the end, -2h before now, +2h after the first record, or @TIME as ms since 1970, ISO-8601 or "
    "-1h. [auto.offset.reset, else beginning]",
)
@click.option("-u", "--until", type=PositionType(), help="Where to stop, like --offset. [end]")
@click.option(
    "-l",
    "--last",
    type=click.IntRange(min=1),
    help="Only this many of the newest records of all partitions, by timestamp.",
)
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
@click.option(
    "-g",
    "--group",
    type=GROUP_NAME,
    help="Share the partitions with the members of this group, start at its offsets, and commit "
    "what was printed. --offset beginning or end is for partitions without an offset. [group.id]",
)
@click.option("--committed", is_flag=True, help="Leave out open and aborted transactions.")
@click.option(
    "--filter",
    "expression",
    metavar="CEL",
    help="Only records for which this is true, as 'value.amount > 100 && key == \"a\"'. There are "
    "key, value, headers, timestamp, timestamp_ms, offset, partition, topic.",
)
@decoding_options
@click.option("-k", "--keys", is_flag=True, help="Show keys before values.")
@click.option("-H", "--headers", is_flag=True, help="Show headers.")
@click.option("-t", "--timestamps", is_flag=True, help="Show timestamps.")
@click.option("--offsets", is_flag=True, help="Show partitions and offsets.")
@click.option(
    "-s", "--separator", type=SeparatorType(), default="\t", help="Separates the columns. [a tab]"
)
@RECORD_FORMAT
@remote
def consume(
    remote: Remote,
    topics: tuple[str, ...],
    regex: bool,
    start: "Position | None",
    until: "Position | None",
    last: int | None,
    follow: bool,
    count: int | None,
    chosen: tuple[int, ...],
    group: str | None,
    committed: bool,
    expression: str | None,
    decode: str,
    decode_key: str,
    schema: Path | None,
    message: str | None,
    registry: str | None,
    keys: bool,
    headers: bool,
    timestamps: bool,
    offsets: bool,
    separator: str,
    output: str,
) -> None:
    """Print the records of each TOPIC up to its end, or with --follow until Ctrl-C.

    The records of each partition are in order. As text, a record is a line with its value, or
    `null`; --format json shows the whole record, in the form that `produce` reads.
    """
    # All imported late, to keep --help fast.
    from penstock.cli.closed_pipe import until_reader_leaves
    from penstock.cli.output import summary
    from penstock.cli.reading import ReadRange, read_as_member, read_last, read_range
    from penstock.cli.record_printing import RecordPrinter, check_template
    from penstock.client.admin import describe_topics, list_topics
    from penstock.client.position import BEGINNING, END
    from penstock.client.properties import group_settings

    if not all(topics):
        raise click.BadParameter("must not be empty", param_hint="TOPIC")
    if follow and until is not None:
        raise click.UsageError("--follow and --until exclude each other")
    if last is not None and (start or follow or group):
        raise click.UsageError("--last goes without --offset, --follow and --group")
    if group is not None and (until or chosen):
        raise click.UsageError("--group goes without --until and --partition")
    group = group or group_of_settings(remote, alone=bool(until or chosen or last))
    check_template(output)
    patterns = [_compiled(each) for each in topics] if regex else []
    decoding = decoding_of(
        decode=decode, decode_key=decode_key, schema=schema, message=message, registry=registry
    )
    wanted = None if expression is None else _filter(expression, decoding.key, decoding.value)
    shown = (timestamps, offsets, headers, keys, True)
    printer = RecordPrinter(output, decoding, show=shown, separator=separator)
    settings = {"auto.offset.reset": "earliest", **remote.settings}
    if start in {BEGINNING, END}:
        settings["auto.offset.reset"] = "earliest" if start == BEGINNING else "latest"
    elif group is None and start is None and settings["auto.offset.reset"].lower() == "latest":
        start = END
    elif group is not None and start is not None:
        raise click.UsageError("with --group, --offset is beginning or end")
    if committed:
        settings["isolation.level"] = "read_committed"
    # This command commits what it printed. Auto-commit would also commit records not printed yet.
    consumer = replace(group_settings(settings), auto_commit_interval_ms=None)
    sink = PrintingSink(printer, wanted, count)

    async def read_from(client: "Client", names: Sequence[str]) -> None:
        where = ReadRange(start, until, consumer.isolation, chosen)
        if group is not None:
            pattern = "|".join(f"(?:{each})" for each in topics) if regex else None
            await read_as_member(client, group, names, pattern, consumer, sink, follow=follow)
        elif last is not None:
            await read_last(client, names, last, where, sink)
        else:
            await read_range(client, names, where, sink, follow=follow)

    async def read(client: "Client") -> None:
        if regex:
            names = [each.name for each in await list_topics(client) if not each.is_internal]
            names = [each for each in names if any(one.fullmatch(each) for one in patterns)]
            if not names and (group is None or not follow):
                raise click.BadParameter("it matches no topic", param_hint="--regex")
            if not names:
                note(f"waiting for a topic that matches {' or '.join(topics)}")
        else:
            names = list(dict.fromkeys(topics))
            await describe_topics(client, names)
        with until_reader_leaves():
            await read_from(client, names)

    topic_names = ", ".join(topics)
    with summary(
        lambda: sink.printed, lambda: f"consumed {counted(sink.printed, 'record')} of {topic_names}"
    ):
        remote.run(read)
    if wanted is not None and wanted.failures:
        warn(f"--filter failed on {counted(wanted.failures, 'record')}: {wanted.first_failure}")
    if printer.undecoded:
        raise SystemExit(ExitCode.PARTLY_DONE)


def group_of_settings(remote: Remote, *, alone: bool) -> str | None:
    """`group.id` of the settings; None, with a warning, if options read without a group."""
    found = remote.settings.get("group.id") or None
    if found is not None and alone:
        warn("group.id has no effect with --until, --partition and --last")
        return None
    return found


class PrintingSink:
    """Prints the records that match the filter, up to a count."""

    def __init__(
        self, printer: "RecordPrinter", wanted: "RecordFilter | None", count: int | None
    ) -> None:
        self.printed = 0
        self._printer, self._wanted, self._count = printer, wanted, count

    @property
    def is_done(self) -> bool:
        return self.printed == self._count

    def take(self, some: "Sequence[ConsumedRecord]") -> int:
        left = len(some) if self._count is None else self._count - self.printed
        if self._wanted is None:
            chosen, taken = list(some[:left]), min(left, len(some))
        else:
            chosen, taken = self._matching(some, left)
        self._printer.print(chosen)
        self.printed += len(chosen)
        return taken

    def _matching(
        self, some: "Sequence[ConsumedRecord]", limit: int
    ) -> "tuple[list[ConsumedRecord], int]":
        assert self._wanted is not None
        chosen: list[ConsumedRecord] = []
        for taken, each in enumerate(some):
            if len(chosen) == limit:
                return chosen, taken
            if self._wanted.matches(each.partition, each.record):
                chosen.append(each)
        return chosen, len(some)


def _compiled(pattern: str) -> Any:
    import re2  # late: rarely needed

    from penstock.config.regex import reason

    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise click.BadParameter(
            f"{pattern!r} is not a regular expression: {reason(error)}", param_hint="TOPIC"
        ) from None


def _filter(
    expression: str, decode_key: "Decode | None", decode_value: "Decode | None"
) -> "RecordFilter":
    """The compiled filter. Without --decode, the format of keys and values is detected."""
    from penstock.record_view.detect import detected  # late: only needed for filters
    from penstock.record_view.filter import record_filter

    return record_filter(expression, decode_key or detected, decode_value or detected)
