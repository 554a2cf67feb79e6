"""`penstock produce`: its options. The work is in `producing`, to keep --help fast."""

from typing import Any, BinaryIO

import click

from penstock.cli.frame.command import Verb
from penstock.cli.frame.option import FORMAT
from penstock.cli.names import TOPIC_NAME
from penstock.cli.position import TimeType
from penstock.cli.ranges import PARTITION
from penstock.cli.remote import Remote, remote
from penstock.cli.separator import SeparatorType
from penstock.errors import ConfigError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
INPUTS = ("text", "json", "ndjson", "csv")


class InputType(click.ParamType[str]):
    """An input format, or a template."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from penstock.record_view.record_input import check_form  # late: keeps --help fast

        try:
            return check_form(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return f"[{'|'.join(INPUTS)}|TEMPLATE]"


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
    "header.NAME; without a value column, the other columns form the value. With a % it is "
    "a template, such as '%k:%s'.",
)
@click.option(
    "-s",
    "--key-separator",
    type=SeparatorType(),
    help=r"Separates key and value in a line; '\t' is a tab.",
)
@click.option(
    "--key-field", metavar="NAME", help="ndjson: the field that is the key, such as user.id."
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
@click.option("-z", "--codec", type=click.Choice(CODECS), help="Compression. [none]")
@click.option(
    "-a",
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    help="Which replicas must have a record before it is acknowledged: none, the leader, or all "
    "in sync. [all]",
)
@click.option(
    "--idempotent/--no-idempotent",
    default=None,
    help="Retries write no duplicates; needs --acks all. [idempotent]",
)
@click.option(
    "--transactional-id",
    metavar="ID",
    help="Write everything in one transaction, or nothing if a line fails.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="At most this many records per second.",
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
    from penstock.cli.producing import ProduceOptions, produce_lines

    produce_lines(
        remote,
        ProduceOptions(
            topic=topic,
            files=files,
            form=form,
            key_separator=key_separator,
            key_field=key_field,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            tombstones=tombstones,
            settings={
                "acks": acks,
                "enable.idempotence": None if idempotent is None else str(idempotent).lower(),
                "transactional.id": transactional_id,
                "compression.type": codec,
            },
            rate=rate,
            on_error=on_error,
            create_topic=create_topic,
            output=output,
        ),
    )
